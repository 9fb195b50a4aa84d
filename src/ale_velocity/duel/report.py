"""What a duel says: ratios with intervals and verdicts, and what identical stacks say about the machine."""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ale_velocity import behaviour, stats
from ale_velocity.cell import cpu_time_gap
from ale_velocity.duel.contest import describe
from ale_velocity.errors import EXIT_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ale_velocity.cell import Cell
    from ale_velocity.stats import Comparison

UNITS = {"wall": stats.WALL_UNIT, "cpu": stats.CPU_UNIT}
SAMPLES = {"wall": "samples", "cpu": "cpu_samples"}
WORDS = {"more": "faster", "less": "slower", "same": "same", "inconclusive": "inconclusive"}
EXIT_CODES = {"more": 0, "same": 0, "less": 1, "inconclusive": 3}
PLANNED_CHANGES = (0.01, 0.02, 0.05, 0.1)


class Duel(Protocol):
    """What was measured of two stacks: a contest's, or a file's; see `Contest`."""

    @property
    def names(self) -> tuple[str, str]:
        """Names of the stacks."""

    @property
    def cells(self) -> list[Cell]:
        """What was measured."""

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """Results of both."""

    @property
    def gaps(self) -> dict[int, dict[str, Any]]:
        """Why a cell, by its number, has no more pairs."""


@dataclass(frozen=True)
class Row:
    """A cell, or all of them, by one measure: one value a process for each side, in pairs; or why there is none.

    `different_work` says so where the two sides' emulators did not behave alike; `windows` is how much the windows of
    the first pair spread; `paces` are the ratios of the machine's paces within pairs, none where a pair lacks them.
    """

    name: str
    measure: str
    values: tuple[list[float], list[float]]
    gap: str | None = None
    different_work: str = ""
    windows: float = 0.0
    paces: Sequence[float] = ()

    @property
    def label(self) -> str:
        """Name and unit."""
        return f"{self.name}, {UNITS[self.measure]}"

    def compare(self, same_within: float, part: slice = slice(None)) -> Comparison:
        """Compare the second stack with the first, by some of the pairs."""
        before, after = self.values
        return stats.compare_in_turn(
            before[part], after[part], same_within=same_within, windows=self.windows, paces=self.paces[part]
        )


def rows(duel: Duel) -> Iterator[Row]:
    """Yield every cell that has pairs, by each measure."""
    for index, cell in enumerate(duel.cells):
        pairs = [pair["results"] for pair in duel.pairs if pair["cell"] == index]
        if not pairs:
            continue
        gaps = [gap for results in pairs for result in results if (gap := cpu_time_gap(result["facts"]))]
        works = [tuple(result.get("behaviour") for result in results) for results in pairs]
        different_work = next(filter(None, itertools.starmap(behaviour.difference, works)), "")
        for measure in UNITS:
            gap = gaps[0] if measure == "cpu" and gaps else None
            sides = [[] if gap else [_value(pair[side], measure) for pair in pairs] for side in (0, 1)]
            windows = 0.0 if gap else stats.windows_spread(*(result[SAMPLES[measure]] for result in pairs[0]))
            paces = [] if gap else _paces(pairs, measure)
            yield Row(describe(cell), measure, (sides[0], sides[1]), gap, different_work, windows, paces)


def together(duel: Duel) -> Iterator[Row]:
    """Yield all cells as one row by each measure, where several have values: what a small change moves is all of them.

    A round, in which each cell had its pair, is one pair of geometric means: what slowed a whole round counts once.
    """
    known = [row for row in rows(duel) if row.gap is None]
    for measure in UNITS:
        cells = [row for row in known if row.measure == measure]
        if len(cells) <= 1:
            continue
        before, after, paces = (
            [statistics.geometric_mean(of_round) for of_round in zip(*columns, strict=False)]
            for columns in zip(*((*row.values, row.paces) for row in cells), strict=True)
        )
        different_work = next(filter(None, (row.different_work for row in cells)), "")
        windows = math.hypot(*(row.windows for row in cells)) / len(cells)
        name = f"{duel.cells[0].agent}, {len(cells)} cells together"
        yield Row(name, measure, (before, after), different_work=different_work, windows=windows, paces=paces)


def all_rows(duel: Duel) -> list[Row]:
    """Return the rows of the cells, then of all together."""
    return [*rows(duel), *together(duel)]


def text(duel: Duel, same_within: float, pairs_each: int, *, repeated: bool = False) -> str:
    """Return a paragraph a row: both stacks, the ratio with its interval, and the verdict; and what was not measured.

    One stack twice also tells of the machine, by duels of `pairs_each`; `repeated` for that, of nothing else.
    """
    found = all_rows(duel)
    paragraphs = [] if repeated else [_verdict(row, duel.names, same_within) for row in found]
    if len(set(duel.names)) == 1:
        paragraphs += [_noise(row, pairs_each, same_within) for row in found]
    return "\n".join([*paragraphs, *(f"not measured: {reason}" for reason in gaps(duel))])


def gaps(duel: Duel) -> list[str]:
    """Return why cells were not measured, or not to the end."""
    return [f"{describe(duel.cells[index])}: {gap['reason']}" for index, gap in duel.gaps.items()]


def failed(duel: Duel) -> bool:
    """Whether a cell failed, rather than being n/a."""
    return any(gap["failed"] for gap in duel.gaps.values())


def exit_code(duel: Duel, measure: str, same_within: float) -> int:
    """Return 2 if a cell failed, else 1 if any is slower, or all together are, else 3 if any has no verdict, else 0."""
    if failed(duel):
        return EXIT_ERROR

    def codes(of: Iterator[Row]) -> set[int]:
        deciding = (row for row in of if row.measure == measure and row.gap is None)
        changes = ("inconclusive" if row.different_work else row.compare(same_within).change for row in deciding)
        return {EXIT_CODES[change] for change in changes}

    cells = codes(rows(duel))
    if 1 in cells | codes(together(duel)):
        return 1
    return max(cells)


def _verdict(row: Row, names: tuple[str, str], same_within: float) -> str:
    if row.gap:
        return f"{row.label}: n/a: {row.gap}"
    comparison = row.compare(same_within)
    typical = [f"{name} {statistics.median(side):,.0f}" for name, side in zip(names, row.values, strict=True)]
    if comparison.low is None or comparison.high is None:
        interval = "one pair: no interval"
    else:
        interval = f"95% interval {comparison.low:.3f} to {comparison.high:.3f}, {len(row.values[0])} pairs"
    word = comparison.reason if comparison.change in ("same", "inconclusive") else WORDS[comparison.change]
    if row.different_work:
        word = f"different work, no verdict: {row.different_work}"
    ratio = f"ratio {comparison.ratio:.3f}{' at equal pace' * comparison.at_equal_pace}"
    return f"{row.label}: {', '.join(typical)}\n    {ratio} ({interval}): {word}"


def _noise(row: Row, pairs_each: int, same_within: float) -> str:
    """Return, for two identical stacks, the rate of false verdicts of duels of `pairs_each`, and the spread."""
    if row.gap:
        return f"{row.label}: n/a: {row.gap}"
    before, after = row.values
    duels = [
        row.compare(same_within, slice(start, start + pairs_each))
        for start in range(0, len(before) - pairs_each + 1, pairs_each)
    ]
    lines = [f"{row.label}:"]
    if len(duels) > 1:
        false = sum(duel.change in ("more", "less") for duel in duels)
        low, high = stats.share_interval(false, len(duels))
        lines.append(
            f"false verdicts in {len(duels)} duels of {pairs_each} pairs: {false}, "
            f"{false / len(duels):.1%} (95% interval {low:.1%} to {high:.1%})"
        )
    if len(before) > 1:
        processes = statistics.stdev(math.log(value) for value in before + after)
        differences = stats.spread_in_turn(before, after, row.paces)
        at_equal_pace = " at equal pace" * row.compare(same_within).at_equal_pace
        lines.append(
            f"spread between processes {processes:.1%}, between the ratios of pairs{at_equal_pace} {differences:.1%}"
        )
        plans = (f"{change:.0%}: {_plan(differences, change)}" for change in PLANNED_CHANGES)
        lines.append(f"pairs to find a change of {', '.join(plans)}")
    return "\n    ".join(lines)


def _plan(spread: float, change: float) -> str:
    number = stats.pairs_needed(spread, change)
    return f"more than {stats.MOST_PLANNED}" if number is None else str(number)


def _paces(pairs: Sequence[Sequence[dict[str, Any]]], measure: str) -> list[float]:
    """Return how much faster the machine was for the second stack, pair by pair; see `stats.pace_ratio`."""
    readings = [[result.get("pace_s", []) for result in results] for results in pairs]
    if not all(itertools.chain(*readings)):
        return []
    return [stats.pace_ratio([before], [after], UNITS[measure]) for before, after in readings]


def _value(result: dict[str, Any], measure: str) -> float:
    samples = result[SAMPLES[measure]]
    (value,) = stats.process_values(samples, len(samples), UNITS[measure])
    return value
