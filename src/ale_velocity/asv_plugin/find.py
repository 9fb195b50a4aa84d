"""`asv find`: search for the release where a benchmark got worse.

asv's search looks for a rise. It is shown costs instead of values: a rate's negative, which turns its search around
exactly, since it compares differences. What is printed and saved are the true values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asv import util

from ale_velocity.units import higher_is_better

if TYPE_CHECKING:
    from collections.abc import Callable


class Costs:
    """A benchmark run's results as asv's search reads them; everything else is the results' own."""

    def __init__(self, results: Any, benchmarks: dict[str, dict[str, Any]]) -> None:
        self._true = results
        self._benchmarks = benchmarks

    def get_result_value(self, name: str, params: Any) -> list[float | None]:
        """Return the cost of each parameter combination, None where it failed or was skipped.

        asv's search passes over failures, but takes a NaN (skipped) for no difference and turns the wrong way.
        """
        sign = -1 if higher_is_better(self._benchmarks[name]["unit"]) else 1
        values = self._true.get_result_value(name, params)
        return [None if util.is_na(value) else sign * value for value in values]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._true, name)


def with_costs(run_benchmarks: Callable[..., Any]) -> Callable[..., Costs]:
    """Return the replacement of the `run_benchmarks` that `asv find` calls."""

    def run(benchmarks: Any, *args: Any, **kwargs: Any) -> Costs:
        return Costs(run_benchmarks(benchmarks, *args, **kwargs), benchmarks)

    return run
