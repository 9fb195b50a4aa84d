"""What became of one benchmark between two commits.

The marks keep asv's meaning, `-` better and `+` worse, with better according to the unit. A `track_` benchmark is
judged by its processes (`ale_velocity.stats`); what asv times itself is judged by asv's own test, as before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asv.commands.compare import _is_result_better
from asv_runner.statistics import get_err

from ale_velocity.asv_plugin import units
from ale_velocity.behaviour import difference
from ale_velocity.stats import Comparison, compare_processes, pace_ratio, process_values, windows_spread

if TYPE_CHECKING:
    from ale_velocity.asv_plugin.sides import Cell

BETTER, WORSE, FAILED, MENDED, INCOMPARABLE, DIFFERENT_WORK, UNCHANGED = "-", "+", "!", "*", "x", "#", " "


@dataclass(frozen=True)
class Verdict:
    """A mark, and what it rests on.

    `ratio` is NaN where a side has no value; `undecided` says that there is a change which may be noise;
    `comparison` is None where processes did not decide; `reason` says why work is different.
    """

    mark: str
    ratio: float = math.nan
    undecided: bool = False
    comparison: Comparison | None = None
    reason: str = ""


def judge(before: Cell, after: Cell, benchmark: dict[str, Any], factor: float, *, use_stats: bool) -> Verdict:
    """Judge one benchmark; changes of less than `factor` are none. Without `use_stats` only the factor counts."""
    if None not in (before.version, after.version) and before.version != after.version:
        return Verdict(INCOMPARABLE)
    old, new = before.value, after.value
    if old is None or new is None:
        return Verdict(UNCHANGED if old is new else FAILED if new is None else MENDED)
    if math.isnan(old) or math.isnan(new):
        return Verdict(UNCHANGED)
    if why := difference(before.behaviour, after.behaviour):
        return Verdict(DIFFERENT_WORK, reason=why)
    if benchmark["type"] == "track" and use_stats and min(old, new) > 0:
        return _by_processes(before, old, after, new, unit=benchmark["unit"], factor=factor)
    return _like_asv(before, old, after, new, unit=benchmark["unit"], factor=factor, use_stats=use_stats)


def spread(cell: Cell) -> float | None:
    """Return the half interquartile range of a cell's samples, which asv writes after a ±."""
    return get_err(cell.value, cell.stats) if cell.stats and "q_25" in cell.stats else None


def _processes(before: Cell, old: float, after: Cell, new: float, unit: str) -> tuple[list[float], list[float]]:
    """Return each side's processes, or its one value where the samples of either are not whole processes.

    Both sides alike: a process's estimate and the median of all samples are different things.
    """
    sides = []
    for cell in (before, after):
        if not cell.samples or not cell.reps or len(cell.samples) % cell.reps:
            return [old], [new]
        sides.append(process_values(cell.samples, cell.reps, unit))
    return sides[0], sides[1]


def _by_processes(before: Cell, old: float, after: Cell, new: float, *, unit: str, factor: float) -> Verdict:
    found = compare_processes(
        *_processes(before, old, after, new, unit),
        same_within=max(factor - 1, 0),
        windows=windows_spread(before.samples or (), after.samples or ()),
        pace=pace_ratio(before.paces, after.paces, unit),
    )
    mark = UNCHANGED
    if found.change in ("more", "less"):
        if units.is_loss(1, found.ratio, unit, factor):
            mark = WORSE
        elif units.is_loss(found.ratio, 1, unit, factor):
            mark = BETTER
    return Verdict(mark, found.ratio, found.change == "inconclusive", found)


def _like_asv(
    before: Cell, old: float, after: Cell, new: float, *, unit: str, factor: float, use_stats: bool
) -> Verdict:
    ratio = new / old if old else math.nan
    worse = units.is_loss(old, new, unit, factor)
    if not worse and not units.is_loss(new, old, unit, factor):
        return Verdict(UNCHANGED, ratio)
    # asv's function takes its first argument for the better one if it is smaller, and looks at the samples too.
    (low, low_cell), (high, high_cell) = ((old, before), (new, after)) if old < new else ((new, after), (old, before))
    statistics = [(cell.stats, cell.samples) if cell.stats else None for cell in (low_cell, high_cell)]
    if not _is_result_better(low, high, *statistics, factor, use_stats=use_stats):
        return Verdict(UNCHANGED, ratio, undecided=True)
    return Verdict(WORSE if worse else BETTER, ratio)
