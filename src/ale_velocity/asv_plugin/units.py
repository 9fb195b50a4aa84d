"""Units inside asv: a suite is accepted only with known ones, and values are written with theirs."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from asv import util

from ale_velocity import units
from ale_velocity.asv_plugin.refusal import refuse
from ale_velocity.units import HIGHER_IS_BETTER, higher_is_better

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# asv's own writing of these scales them (ms, k): it is kept.
WRITTEN_BY_ASV = ("seconds", "bytes")


def known_only(init: Callable[..., None]) -> Callable[..., None]:
    """Return the replacement of `Benchmarks.__init__`: every command gets the suite from it, with known units."""

    def checked_init(self: Any, conf: Any, benchmarks: Any, regex: Any = None) -> None:
        described = list(benchmarks)
        _check(described)
        init(self, conf, described, regex=regex)

    return checked_init


def _check(benchmarks: Iterable[dict[str, Any]]) -> None:
    """Refuse a suite with a benchmark (asv's description of it) whose unit is not in the table."""
    unknown = [
        f"benchmark {benchmark['name']} has the unit {benchmark.get('unit')!r}"
        for benchmark in benchmarks
        if benchmark.get("unit") not in HIGHER_IS_BETTER
    ]
    if unknown:
        refuse(
            f"{'; '.join(unknown)}: whether higher or lower is better is not known. Add the unit to HIGHER_IS_BETTER "
            f"in {units.__file__}, or use one of {', '.join(HIGHER_IS_BETTER)}"
        )


def is_loss(before: float, after: float, unit: str, factor: float = 1.0) -> bool:
    """Whether `after` is worse than `before` by more than `factor`, as asv's --factor counts it."""
    return after < before / factor if higher_is_better(unit) else before < after / factor


def with_unit(human_value: Callable[..., str]) -> Callable[..., str]:
    """Return the replacement of asv's `human_value`, which writes all digits of a `track_` result, and no unit."""

    def human(value: Any, unit: str | None, err: float | None = None) -> str:
        """Write a number to 4 significant digits with its unit, anything else as asv does."""
        if unit is None or unit in WRITTEN_BY_ASV or util.is_na(value) or not isinstance(value, (int, float)):
            return human_value(value, unit, err=err)
        # By way of Decimal, which writes neither exponents nor digits that are not there.
        return f"{Decimal(f'{value:.4g}'):f} {unit}"

    return human
