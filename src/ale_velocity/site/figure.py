"""A figure for documents: rates of one release against the number of envs, as SVG, without any library."""

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
TICK_STEPS = (1, 2, 5)
LEGEND_STEP = 150

Curve = list[tuple[int, "Interval"]]


def draw(points: Sequence[Point]) -> str:
    """Return the SVG of measured points, which must be of one release, setup and benchmark, and at least one."""
    curves: dict[str, Curve] = {}
    for point in points:
        label = ", ".join(value for name, value in point.line.params if name != "num_envs")
        curves.setdefault(label, []).append((int(dict(point.line.params)["num_envs"]), point.interval))
    rates = [interval.mean for curve in curves.values() for _, interval in curve]
    counts = sorted({n for curve in curves.values() for n, _ in curve})
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
    for i, (label, curve) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        parts += [_band(scale, curve, colour), _line(scale, curve, colour)]
        x = LEFT + LEGEND_STEP * i
        parts += [f'<circle cx="{x}" cy="48" r="5" fill="{colour}"/>', _text(x + 10, 52, label, "start")]
    return "\n".join([*parts, "</svg>\n"])


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


def _path(scale: _Scale, places: Sequence[tuple[int, float]]) -> str:
    return " ".join(f"{scale.x(n):.1f},{scale.y(rate):.1f}" for n, rate in places)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
