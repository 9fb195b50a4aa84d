"""Which way is better: the one table of units, and how a value is written with its unit."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from asv import util

from ale_velocity.asv_plugin.refusal import refuse
from ale_velocity.stats import CPU_UNIT, WALL_UNIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HIGHER, LOWER = True, False

# Every unit that a benchmark may have, and whether a higher or a lower value is better. A new unit gets a line here.
HIGHER_IS_BETTER = {
    WALL_UNIT: HIGHER,
    CPU_UNIT: HIGHER,
    "microseconds/step": LOWER,
    "seconds": LOWER,  # asv's time_ benchmarks
    "bytes": LOWER,  # asv's mem_ and peakmem_ benchmarks
}
# asv's own writing of these scales them (ms, k): it is kept.
WRITTEN_BY_ASV = ("seconds", "bytes")


def higher_is_better(unit: str) -> bool:
    """Whether a higher value is better in a unit of the table."""
    return HIGHER_IS_BETTER[unit]


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
            f"in {__file__}, or use one of {', '.join(HIGHER_IS_BETTER)}"
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
