"""`asv find`: search for the release where a benchmark got worse.

asv's search looks for a rise. It is shown costs instead of values: a rate's negative, which turns its search around
exactly, since it compares differences. What is printed and saved are the true values. It knows nothing of work that
differs, so releases whose fingerprints do are named.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from asv import util
from asv.console import log

from ale_velocity.asv_plugin import machine
from ale_velocity.asv_plugin.environment import StackEnvironment
from ale_velocity.asv_plugin.records import CellRecords, cell_name
from ale_velocity.behaviour import difference
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
    commits: dict[str, str] = {}  # the first of this search with a fingerprint

    def run(benchmarks: Any, env: Any, *args: Any, results: Any, **kwargs: Any) -> Costs:
        measured = run_benchmarks(benchmarks, env, *args, results=results, **kwargs)
        if isinstance(env, StackEnvironment) and (found := _fingerprint(benchmarks, env, results.commit_hash)):
            _note_work(commits, results.commit_hash, found)
        return Costs(measured, benchmarks)

    return run


def _fingerprint(benchmarks: Any, env: StackEnvironment, commit: str) -> str | None:
    """Return the fingerprint that any cell of the one benchmark recorded; env counts and loops do not change it."""
    ((name, benchmark),) = benchmarks.items()
    records = CellRecords(env.results_dir, machine.name())
    places = range(math.prod(map(len, benchmark["params"])))
    cells = (cell_name(name, benchmark["params"], place) for place in places)
    return next(filter(None, (records.behaviour(commit, env.name, cell) for cell in cells)), None)


def _note_work(commits: dict[str, str], commit: str, found: str) -> None:
    """Warn when a search meets another fingerprint than before."""
    if found in commits:
        return
    for before, other in commits.items():
        if why := difference(before, found):
            log.warning(f"{commit[:8]} does different work than {other[:8]}, a step between them is no loss: {why}")
    commits[found] = commit
