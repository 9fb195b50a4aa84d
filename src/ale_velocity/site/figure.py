"""A figure for documents: rates of one release against the number of envs, as SVG, without any library.

The limits are drawn beside the curves, as on the throughput page (`isCeilingOf` and `fastest` there).
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from ale_velocity.site.points import benchmark_label
from ale_velocity.units import direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ale_velocity.site.points import Point
    from ale_velocity.stats import Interval

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 740, 70, 370  # edges of the plot within it
# The page's colours of loops, which colour-blind readers can tell apart, in order of declaration.
COLOURS = ("#0072b2", "#e69f00", "#cc79a7", "#56b4e9", "#8c8c8c", "#b0a000")
LIMIT_COLOUR = "#59626e"
TICK_STEPS = (1, 2, 5)
LEGEND_STEP = 135
EMULATOR, LEARNER = "EmulatorOnly", "LearnerOnly"  # the benchmarks of limits, by their classes
DASHES = {EMULATOR: "8 5", LEARNER: "2 4"}

Curve = list[tuple[int, "Interval"]]


def draw(points: Sequence[Point], known: Sequence[Point] = ()) -> str:
    """Return the SVG of measured points, which must be of one release, setup and benchmark, and at least one.

    Their limits are taken from the `known` points.
    """
    curves: dict[str, Curve] = {}
    for point in points:
        label = ", ".join(value for name, value in point.line.params if name != "num_envs")
        curves.setdefault(label, []).append((_num_envs(point), point.interval))
    limits = _limits(points[0], known)
    everything = [*curves.values(), *limits.values()]
    rates = [interval.mean for curve in everything for _, interval in curve]
    counts = sorted({n for curve in everything for n, _ in curve})
    scale = _Scale(counts, min(rates) / 1.3, max(rates) * 1.3)
    first = points[0]
    title = f"{benchmark_label(first.line.benchmark)}, {first.release.name}, {first.line.setup.machine}"
    style = 'font-family="sans-serif" font-size="13" fill="#1c2026"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {style}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 24, f"{title}: {first.unit} ({direction(first.unit)})", "start"),
        *(_grid(scale, counts)),
    ]
    for name, curve in limits.items():
        parts.append(_dashed(scale, curve, DASHES[name]))
    for i, (label, curve) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        parts += [_band(scale, curve, colour), _line(scale, curve, colour), *_legend(i, label, colour)]
    for i, name in enumerate(limits, start=len(curves)):
        parts += _legend(i, f"limit: {name.removesuffix('Only').lower()}", LIMIT_COLOUR, DASHES[name])
    return "\n".join([*parts, "</svg>\n"])


def _limits(of: Point, known: Sequence[Point]) -> dict[str, Curve]:
    """Return, for each limit of a benchmark, the fastest of its loops for each number of envs.

    The emulator limits every loop; the learner alone is the one of the eager DQN loop.
    """
    names = {EMULATOR: (), "DqnTraining": (EMULATOR, LEARNER)}.get(_class_name(of), (EMULATOR,))
    limits = {}
    for name in names:
        best: dict[int, Interval] = {}
        for point in known:
            if _class_name(point) == name and _place(point) == _place(of) and point.status == "measured":
                n, interval = _num_envs(point), point.interval
                best[n] = max(interval, best.get(n, interval), key=lambda one: one.mean)
        if best:
            limits[name] = sorted(best.items())
    return limits


def _class_name(point: Point) -> str:
    return point.line.benchmark.split(".")[1]


def _place(point: Point) -> tuple[object, ...]:
    return point.release, point.line.series, point.line.setup, point.unit


def _num_envs(point: Point) -> int:
    return int(dict(point.line.params)["num_envs"])


class _Scale:
    """Logarithmic axes: counts to x, rates to y, in pixels."""

    def __init__(self, counts: Sequence[int], low: float, high: float) -> None:
        self.counts, self.low, self.high = counts, low, high

    def x(self, count: int) -> float:
        """Evenly for doubling counts, with some room at both sides; a single count is in the middle."""
        if len(self.counts) == 1:
            return (LEFT + RIGHT) / 2
        share = math.log(count / self.counts[0]) / math.log(self.counts[-1] / self.counts[0])
        return LEFT + 20 + share * (RIGHT - LEFT - 40)

    def y(self, rate: float) -> float:
        """An interval may reach below what the axis shows, even below zero: it ends at the axis."""
        share = math.log(max(rate, self.low) / self.low) / math.log(self.high / self.low)
        return BOTTOM - min(share, 1) * (BOTTOM - TOP)

    def ticks(self) -> list[float]:
        """Rates at which to draw a line: 1, 2 and 5 of each decade."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
        ticks = [step * 10.0**decade for decade in decades for step in TICK_STEPS]
        return [tick for tick in ticks if self.low <= tick <= self.high]


def _grid(scale: _Scale, counts: Sequence[int]) -> list[str]:
    parts = []
    for tick in scale.ticks():
        y = f"{scale.y(tick):.1f}"
        parts.append(f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}" stroke="#d4d9df"/>')
        parts.append(_text(LEFT - 8, scale.y(tick) + 4, f"{tick:,.0f}", "end"))
    parts += [_text(scale.x(count), BOTTOM + 20, str(count), "middle") for count in counts]
    parts.append(f'<line x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}" stroke="#59626e"/>')
    parts.append(_text((LEFT + RIGHT) / 2, BOTTOM + 42, "number of envs", "middle"))
    return parts


def _band(scale: _Scale, curve: Curve, colour: str) -> str:
    corners = [(n, interval.high) for n, interval in curve] + [(n, interval.low) for n, interval in reversed(curve)]
    return f'<polygon points="{_path(scale, corners)}" fill="{colour}" fill-opacity="0.2"/>'


def _line(scale: _Scale, curve: Curve, colour: str) -> str:
    middles = [(n, interval.mean) for n, interval in curve]
    dots = "".join(f'<circle cx="{scale.x(n):.1f}" cy="{scale.y(rate):.1f}" r="4"/>' for n, rate in middles)
    path = f'<polyline points="{_path(scale, middles)}" fill="none" stroke="{colour}" stroke-width="2"/>'
    return f'{path}<g fill="{colour}">{dots}</g>'


def _dashed(scale: _Scale, curve: Curve, dash: str) -> str:
    path = _path(scale, [(n, interval.mean) for n, interval in curve])
    stroke = f'stroke="{LIMIT_COLOUR}" stroke-width="2" stroke-dasharray="{dash}"'
    return f'<polyline points="{path}" fill="none" {stroke}/>'


def _legend(place: int, label: str, colour: str, dash: str = "") -> list[str]:
    """Return a dot, or a dashed line, and what it stands for."""
    x = LEFT + LEGEND_STEP * place
    dot = f'<circle cx="{x}" cy="48" r="5" fill="{colour}"/>'
    stroke = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
    line = f'<line x1="{x - 8}" x2="{x + 8}" y1="48" y2="48" {stroke}/>'
    return [line if dash else dot, _text(x + 12, 52, label, "start")]


def _path(scale: _Scale, places: Sequence[tuple[int, float]]) -> str:
    return " ".join(f"{scale.x(n):.1f},{scale.y(rate):.1f}" for n, rate in places)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
