"""What became of a cell from one release to the next that was measured."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ale_velocity.behaviour import difference, is_known
from ale_velocity.stats import compare_pairs, compare_processes, pace_ratio, windows_spread
from ale_velocity.units import higher_is_better

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ale_velocity.site.points import Point, Results, Setup
    from ale_velocity.stats import Comparison
    from ale_velocity.timeline.manifest import Release, Series

# The order in which a release's page lists them.
WORDS = (
    "slower",
    "faster",
    "failed",
    "different work",
    "inconclusive",
    "same",
    "first measured",
    "n/a",
    "not measured",
)
DIFFERENT_WORK = "different work"  # how the note of a release starts that must not be compared with its neighbours


@dataclass(frozen=True)
class Step:
    """From the last measured point before, a rate changed by `ratio` = after / before.

    `interval` holds the ends of the ratio's 95% interval, or None where one process a side tells nothing of spread.
    """

    before: Point
    ratio: float
    interval: tuple[float, float] | None = None

    @property
    def size(self) -> float:
        """Distance from no change, so that a half and a double are as large."""
        return max(self.ratio, 1 / self.ratio)


@dataclass(frozen=True)
class Verdict:
    """One of `WORDS`, why, and where two releases were compared, the step between them."""

    word: str
    reason: str = ""
    step: Step | None = None


@dataclass(frozen=True)
class Change:
    """A point, and what became of it since the release before it that was measured."""

    point: Point
    verdict: Verdict


@dataclass(frozen=True)
class Shift:
    """From one release to another, all cells of a benchmark together changed by `comparison`, a pair each."""

    setup: Setup
    benchmark: str
    before: Release
    after: Release
    word: str
    cells: int
    comparison: Comparison


def changes(results: Results) -> list[Change]:
    """Return the verdict on every point, in order of lines, then of versions."""
    series = {one.name: one for one in results.series}
    return [change for line, points in results.lines.items() for change in line_changes(series[line.series], points)]


def line_changes(series: Series, points: dict[str, Point]) -> Iterator[Change]:
    """Compare each measured point of a line with the last one before it; a gap changes nothing."""
    before: Point | None = None
    for release in series.releases:
        point = points.get(release.name)
        if point is None:
            continue
        if point.status != "measured":
            yield Change(point, Verdict(point.status, point.reason))
            continue
        yield Change(point, _verdict(before, point) if before else Verdict("first measured"))
        before = point


def shifts(changes: Iterable[Change]) -> list[Shift]:
    """Return, for every two neighbouring releases and each benchmark and setup, what two or more cells say together.

    A single process a side seldom tells; all loops and env counts of a benchmark do, if they change alike.
    """
    groups: dict[tuple[Setup, str, Release, Release], list[tuple[Point, Point]]] = {}
    for change in changes:
        step, point = change.verdict.step, change.point
        if step and change.verdict.word != "different work" and step.before.process_values and point.process_values:
            key = point.line.setup, point.line.benchmark, step.before.release, point.release
            groups.setdefault(key, []).append((step.before, point))
    return [_shift(*key, pairs) for key, pairs in groups.items() if len(pairs) > 1]


def typical(point: Point) -> float:
    """Return what stands for a point with whole processes: the geometric mean of these."""
    return statistics.geometric_mean(point.process_values)


def compare_points(pairs: Sequence[tuple[Point, Point]], value: Callable[[Point], float] = typical) -> Comparison:
    """Compare the second points of pairs with the first by a value of each; the machine's pace must not explain it."""
    before, after = zip(*pairs, strict=True)
    return compare_pairs(
        [value(point) for point in before],
        [value(point) for point in after],
        windows=windows_spread(before[0].samples, after[0].samples),
        paces=[pace_ratio(old.paces, new.paces, new.unit) for old, new in pairs],
    )


def different_work(before: Point, after: Point) -> str | None:
    """Return why two releases' points must not be compared, None where they may be.

    Fingerprints of both decide, since a release may do other work in one of its envs only. Without, its note does.
    """
    if is_known(before.behaviour, after.behaviour):
        why = difference(before.behaviour, after.behaviour)
        return f"different work than {before.release.name}: {why}" if why else None
    noted = (release for release in (after.release, before.release) if release.note.startswith(DIFFERENT_WORK))
    return next((f"{release.name}: {release.note}" for release in noted), None)


def _verdict(before: Point, after: Point) -> Verdict:
    plain = Step(before, after.interval.mean / before.interval.mean)
    if why := different_work(before, after):
        return Verdict("different work", why, plain)
    for point in (before, after):
        if not point.process_values:
            reason = f"{point.release.name} lacks whole processes of {point.reps} windows (asv run --record-samples)"
            return Verdict("inconclusive", reason, plain)
    comparison = compare_processes(
        before.process_values,
        after.process_values,
        windows=windows_spread(before.samples, after.samples),
        pace=pace_ratio(before.paces, after.paces, after.unit),
    )
    word = _word(comparison, after.unit)
    low, high = comparison.low, comparison.high
    interval = None if low is None or high is None else (low, high)
    # Of a change that was found, the interval says all.
    reason = "" if interval and word in {"faster", "slower"} else comparison.reason
    return Verdict(word, reason, Step(before, comparison.ratio, interval))


def _word(comparison: Comparison, unit: str) -> str:
    better, worse = ("more", "less") if higher_is_better(unit) else ("less", "more")
    return {better: "faster", worse: "slower"}.get(comparison.change, comparison.change)


def _shift(
    setup: Setup, benchmark: str, before: Release, after: Release, pairs: Sequence[tuple[Point, Point]]
) -> Shift:
    comparison = compare_points(pairs)
    return Shift(setup, benchmark, before, after, _word(comparison, pairs[0][1].unit), len(pairs), comparison)
