"""`ale-velocity speedup`: how much faster one loop is than another, over all releases that measured both."""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ale_velocity import selection
from ale_velocity.errors import VelocityError, require_known
from ale_velocity.options import at_least_one
from ale_velocity.site.points import benchmark_label
from ale_velocity.stats import WALL_UNIT, compare_pairs
from ale_velocity.units import higher_is_better

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ale_velocity.site.points import Point

DESCRIPTION = """\
Compare loops by stored results: async with blocking, say. A release that measured both loops with the same number of
envs gives one pair of processes, and the speed-up is the mean of the pairs' ratios (of their logarithms), with its 95%
interval. The interval is wider where releases differ in their speed-up. One pair alone has none.

The line "all" is of all pairs above it: choose counts with a similar speed-up by --counts.
"""
FASTER = {"more": "faster", "less": "slower"}
Cells = dict[tuple[str, int], "Point"]  # what one release measured of a benchmark, by loop and env count


@dataclass(frozen=True)
class Pair:
    """A release's speeds with two loops, each of all its processes."""

    release: str
    over: float
    speed: float

    def __str__(self) -> str:
        return f"{self.release} {self.speed / self.over:.2f}"


def add_command(subparsers: Any) -> None:
    """Add `speedup`."""
    parser = subparsers.add_parser(
        "speedup",
        help="compare loops by stored results, over releases",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("--over", default="step", metavar="LOOP", help="the loop to compare with (default: step)")
    parser.add_argument("--loops", nargs="+", metavar="LOOP", help="only these (default: all others)")
    parser.add_argument("--counts", nargs="+", type=at_least_one, metavar="N", help="only these env counts")
    selection.add_options(parser, unit_default=f"default: {WALL_UNIT}")


def run(arguments: argparse.Namespace) -> int:
    """Read, select, and print a table for each benchmark and setup that has pairs."""
    from ale_velocity.asv_plugin import stored

    results = stored.read_config(arguments.config)
    points = sorted(results.points, key=lambda point: (point.line.sort_key, results.positions[point.release.name]))
    points = [point for point in points if point.status == "measured"]
    values = {"unit": WALL_UNIT, **selection.wanted(arguments)}
    points = [point for point in selection.select(points, values, lambda point: point) if _is_usable(point)]
    _require("loop", [arguments.over, *(arguments.loops or [])], dict.fromkeys(_loop(point) for point in points))
    _require("env count", arguments.counts or [], sorted({_count(point) for point in points}))
    tables = [
        _table(heading, members, arguments.over, arguments.loops, arguments.counts)
        for heading, members in _grouped(points).items()
    ]
    found = [table for table in tables if table]
    if not found:
        raise VelocityError(f"no release measured both {arguments.over} and another of the chosen loops")
    print("\n\n".join(found))
    return 0


def _require(what: str, wanted: Iterable[object], known: Iterable[object]) -> None:
    require_known(what, [str(name) for name in wanted], [str(name) for name in known])


def _is_usable(point: Point) -> bool:
    """Whether it is of a loop, and has whole processes."""
    return {"loop", "num_envs"} <= dict(point.line.params).keys() and bool(point.process_values)


def _loop(point: Point) -> str:
    return dict(point.line.params)["loop"]


def _count(point: Point) -> int:
    return int(dict(point.line.params)["num_envs"])


def _grouped(points: Iterable[Point]) -> dict[str, dict[str, Cells]]:
    """Return, by the heading of their table and then by release, what belongs together."""
    groups: dict[str, dict[str, Cells]] = {}
    for point in points:
        params = dict(point.line.params)
        others = [value for name, value in params.items() if name not in {"loop", "num_envs"}]
        label = ", ".join([benchmark_label(point.line.benchmark), *others, point.unit])
        heading = f"{label}, {point.line.setup}"
        of_release = groups.setdefault(heading, {}).setdefault(point.release.name, {})
        of_release[_loop(point), _count(point)] = point
    return groups


def _table(
    heading: str, releases: dict[str, Cells], over: str, loops: Sequence[str] | None, counts: Sequence[int] | None
) -> str:
    """Return the lines of a benchmark and setup; empty without a pair."""
    found: dict[str, dict[int, list[Pair]]] = {}
    for cells in releases.values():
        for (loop, count), point in cells.items():
            before = cells.get((over, count))
            if before and loop != over and loop in (loops or [loop]) and count in (counts or [count]):
                pair = Pair(point.release.version, _speed(before), _speed(point))
                found.setdefault(loop, {}).setdefault(count, []).append(pair)
    lines = []
    for loop, of_count in found.items():
        rows = [(str(count), of_count[count]) for count in sorted(of_count)]
        if len(rows) > 1:
            rows.append(("all", [pair for _, pairs in rows for pair in pairs]))
        lines += [_line(loop, envs, pairs) for envs, pairs in rows]
    if not lines:
        return ""
    columns = _columns(("loop", "envs", "pairs", "speed-up", "95% interval", "verdict", "by release"))
    return "\n".join([f"{heading}: speed-up over {over}", columns, *lines])


def _line(loop: str, envs: str, pairs: Sequence[Pair]) -> str:
    comparison = compare_pairs([pair.over for pair in pairs], [pair.speed for pair in pairs])
    interval = "" if comparison.low is None else f"{comparison.low:.2f} to {comparison.high:.2f}"
    verdict = FASTER.get(comparison.change, comparison.change)
    each = "" if envs == "all" else ", ".join(map(str, pairs))
    return _columns((loop, envs, str(len(pairs)), f"{comparison.ratio:.2f}", interval, verdict, each))


def _columns(words: tuple[str, ...]) -> str:
    return "  {:<16}{:>5}{:>7}{:>10}  {:<14}{:<14}{}".format(*words).rstrip()


def _speed(point: Point) -> float:
    """Return the geometric mean of a point's processes; of times, its inverse."""
    mean = statistics.geometric_mean(point.process_values)
    return mean if higher_is_better(point.unit) else 1 / mean
