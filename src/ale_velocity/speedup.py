"""`ale-velocity speedup`: how much faster a loop or a release is than another, by all stored results that tell."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tabulate

from ale_velocity import selection
from ale_velocity.errors import VelocityError, require_known
from ale_velocity.options import at_least_one
from ale_velocity.site.order import natural_key
from ale_velocity.site.points import DRIVERS, benchmark_label, driver
from ale_velocity.site.verdicts import compare_points, different_work, typical
from ale_velocity.stats import WALL_UNIT, is_other_pace, pace_ratio
from ale_velocity.units import higher_is_better

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from ale_velocity.site.points import Point

DESCRIPTION = """\
Compare loops by stored results: async with blocking, say. A release that measured both loops with the same number of
envs gives one pair of processes, and the speed-up is the mean of the pairs' ratios (of their logarithms), with its 95%
interval. The interval is wider where pairs differ in their speed-up. One pair alone has none. Where the machine ran at
another pace within pairs, a verdict must not be explained by that.

With a release for --over, releases are compared in the same way: a loop and env count that both measured gives one
pair. That says by how much, and gives no verdict, since releases are not measured one after the other, as `ale-velocity
duel` does. Releases that do different work are left out.

The line "all" is of all pairs above it: choose counts with a similar speed-up by --counts.
"""
FASTER = {"more": "faster", "less": "slower"}
ALIGNED = ("left", "left", "right", "right", "left", "left", "left")  # the columns of a table


@dataclass(frozen=True)
class Place:
    """Where a point stands in a table: a pair has two points of one `mate`, and is counted for `who`, in `row`."""

    who: str
    mate: Hashable
    row: str
    label: str  # of the pair, in its row


@dataclass(frozen=True)
class Kind:
    """What is compared, loops or releases: how points pair, and the headings of the table's columns."""

    place: Callable[[Point], Place]
    columns: tuple[str, str, str]
    across_releases: bool  # a pair must then have done the same work, and was not measured one after the other


@dataclass(frozen=True)
class Pair:
    """Two points that differ in what is compared, each with all its processes; `over` is the one compared with."""

    label: str
    over: Point
    point: Point

    @property
    def speeds(self) -> tuple[float, float]:
        """Of `over` and of `point`."""
        return _speed(self.over), _speed(self.point)

    @property
    def pace(self) -> float:
        """How many times as fast the machine was for `point`."""
        return pace_ratio(self.over.paces, self.point.paces, self.point.unit)

    def __str__(self) -> str:
        (before, after), pace = self.speeds, self.pace
        said = f" (at {pace:.2f} times the pace)" if is_other_pace(pace) else ""
        return f"{self.label} {after / before:.2f}{said}"


def add_command(subparsers: Any) -> None:
    """Add `speedup`."""
    parser = subparsers.add_parser(
        "speedup",
        help="compare loops, or releases, by stored results",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--over", default="step", metavar="NAME", help="the loop, baseline or release to compare with (default: step)"
    )
    parser.add_argument("--loops", nargs="+", metavar="LOOP", help="only these (default: all)")
    parser.add_argument("--counts", nargs="+", type=at_least_one, metavar="N", help="only these env counts")
    selection.add_options(parser, unit_default=f"default: {WALL_UNIT}")


def run(arguments: argparse.Namespace) -> int:
    """Read, select, and print a table for each benchmark and setup that has pairs."""
    from ale_velocity.asv_plugin import stored

    results = stored.read_config(arguments.config)
    points = [point for point in results.points if point.status == "measured"]
    # Release by release, so that a table has them in their order whichever has the first cell.
    points.sort(key=lambda point: (point.line.kind_key, results.positions[point.release.name], point.line.place))
    values = {"unit": WALL_UNIT, **selection.wanted(arguments)}
    points = [point for point in selection.select(points, values, lambda point: point) if _is_usable(point)]
    over, releases = arguments.over, dict.fromkeys(point.release.name for point in points)
    loops = dict.fromkeys(_loop(point) for point in points)
    require_known("loop, baseline or release", [over], [*loops, *releases])
    require_known("loop", arguments.loops or [], loops)
    counts = sorted({_count(point) for point in points})
    require_known("env count", map(str, arguments.counts or []), map(str, counts))
    kind = RELEASES if over in releases else LOOPS
    chosen = [
        point
        for point in points
        if (not arguments.loops or _loop(point) in {*arguments.loops, over})
        and _count(point) in (arguments.counts or counts)
    ]
    found = [table for heading, members in _grouped(chosen).items() if (table := _table(heading, members, over, kind))]
    if not found:
        raise VelocityError(f"nothing that is chosen was measured both with {over} and with another, for the same work")
    print("\n\n".join(found))
    return 0


def _is_usable(point: Point) -> bool:
    """Whether it is of a loop or baseline, and has whole processes."""
    params = dict(point.line.params)
    return "num_envs" in params and driver(params) is not None and bool(point.process_values)


def _loop(point: Point) -> str:
    return driver(dict(point.line.params))


def _count(point: Point) -> int:
    return int(dict(point.line.params)["num_envs"])


def _of_loop(point: Point) -> Place:
    return Place(_loop(point), (point.release.name, _count(point)), str(_count(point)), point.release.version)


def _of_release(point: Point) -> Place:
    return Place(point.release.name, (point.line.series, point.line.params), _loop(point), str(_count(point)))


LOOPS = Kind(_of_loop, ("loop", "envs", "by release"), across_releases=False)
RELEASES = Kind(_of_release, ("release", "loop", "by envs"), across_releases=True)


def _grouped(points: Iterable[Point]) -> dict[str, list[Point]]:
    """Return, by the heading of their table, what belongs together."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        params = dict(point.line.params)
        others = [value for name, value in params.items() if name not in {*DRIVERS, "num_envs"}]
        label = ", ".join([benchmark_label(point.line.benchmark), *others, point.unit])
        groups.setdefault(f"{label}, {point.line.setup}", []).append(point)
    return groups


def _table(heading: str, points: Sequence[Point], over: str, kind: Kind) -> str:
    """Return the lines of a benchmark and setup; empty without a pair."""
    places = [(kind.place(point), point) for point in points]
    mates = {place.mate: point for place, point in places if place.who == over}
    found: dict[str, dict[str, list[Pair]]] = {}
    for place, point in places:
        mate = mates.get(place.mate)
        if mate and place.who != over and not (kind.across_releases and different_work(mate, point)):
            pair = Pair(place.label, mate, point)
            found.setdefault(place.who, {}).setdefault(place.row, []).append(pair)
    if not found:
        return ""
    who, row, each = kind.columns
    headers = (who, row, "pairs", "speed-up", "95% interval", "" if kind.across_releases else "verdict", each)
    lines: list[tuple[str, ...]] = []
    for name, of_row in found.items():
        rows = [(label, of_row[label]) for label in sorted(of_row, key=natural_key)]
        if len(rows) > 1:
            rows.append(("all", [pair for _, pairs in rows for pair in pairs]))
        lines += [_line(name, label, pairs, kind) for label, pairs in rows]
    table = tabulate.tabulate(lines, headers, tablefmt="plain", disable_numparse=True, colalign=ALIGNED)
    return "\n".join([f"{heading}: speed-up over {over}", *(f"  {line}".rstrip() for line in table.splitlines())])


def _line(who: str, row: str, pairs: Sequence[Pair], kind: Kind) -> tuple[str, ...]:
    comparison = compare_points([(pair.over, pair.point) for pair in pairs], _speed)
    interval = "" if comparison.low is None else f"{comparison.low:.2f} to {comparison.high:.2f}"
    verdict = "" if kind.across_releases else FASTER.get(comparison.change, comparison.change)
    each = "" if row == "all" else ", ".join(map(str, pairs))
    return who, row, str(len(pairs)), f"{comparison.ratio:.2f}", interval, verdict, each


def _speed(point: Point) -> float:
    """Return what is typical of a point's processes; of times, its inverse."""
    return typical(point) if higher_is_better(point.unit) else 1 / typical(point)
