"""What became of a cell from one release to the next that was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ale_velocity.behaviour import difference
from ale_velocity.stats import compare_processes, pace_ratio, windows_spread
from ale_velocity.units import higher_is_better

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ale_velocity.site.points import Point, Results
    from ale_velocity.timeline.manifest import Series

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


def different_work(before: Point, after: Point) -> str | None:
    """Return why two releases' points must not be compared, None where they may be."""
    for release in (after.release, before.release):
        if release.note.startswith(DIFFERENT_WORK):
            return f"{release.name}: {release.note}"
    why = difference(before.behaviour, after.behaviour)
    return f"different work than {before.release.name}: {why}" if why else None


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
    better, worse = ("more", "less") if higher_is_better(after.unit) else ("less", "more")
    word = {better: "faster", worse: "slower"}.get(comparison.change, comparison.change)
    low, high = comparison.low, comparison.high
    interval = None if low is None or high is None else (low, high)
    # Of a change that was found, the interval says all.
    reason = "" if interval and word in {"faster", "slower"} else comparison.reason
    return Verdict(word, reason, Step(before, comparison.ratio, interval))
