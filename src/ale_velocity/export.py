"""`ale-velocity export`: the numbers of the throughput page, for other programs."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ale_velocity import selection
from ale_velocity.errors import VelocityError
from ale_velocity.site import figure, verdicts
from ale_velocity.site.order import natural_key
from ale_velocity.site.points import benchmark_label, chart_name, driver
from ale_velocity.stats import WALL_UNIT

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from ale_velocity.site.points import Point, Results
    from ale_velocity.site.verdicts import Change

Row = dict[str, Any]
MARKDOWN_COLUMNS = (
    "release",
    "machine",
    "game",
    "benchmark",
    "loop",
    "num_envs",
    "mean",
    "half_width",
    "unit",
    "verdict",
)


def add_command(subparsers: Any) -> None:
    """Add `export`."""
    parser = subparsers.add_parser(
        "export",
        help="write stored results in another format",
        description="Write stored results with their intervals and verdicts, the same numbers as the site's. "
        "js is an array of chart constants a loop, svg a figure, with the limit beside the curves; "
        "both are of one release, benchmark and setup.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--format", choices=FORMATS, default="csv", help="default: csv")
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: standard output, but for parquet")
    selection.add_options(parser, unit_default=f"js and svg take {WALL_UNIT} unless told otherwise")


def run(arguments: argparse.Namespace) -> int:
    """Read, select, and write."""
    from ale_velocity.asv_plugin import stored

    results = stored.read_config(arguments.config)
    wanted = selection.wanted(arguments)
    if arguments.format in CHARTS:
        wanted.setdefault("unit", WALL_UNIT)
    changes = selection.select(verdicts.changes(results), wanted, lambda change: change.point)
    if arguments.format in CHARTS:
        points = _of_one_chart([change.point for change in changes])
        content = CHARTS[arguments.format](points, results.points).encode()
    else:
        content = TABLES[arguments.format]([_row(results, change) for change in changes])
    if arguments.output:
        arguments.output.write_bytes(content)
    elif arguments.format == "parquet":
        raise VelocityError("parquet is not text: give --output FILE")
    else:
        sys.stdout.write(content.decode())
    return 0


def chart_constants(points: Sequence[Point], _: Sequence[Point] = ()) -> str:
    """Return an array a loop of `{ n, thr, thr_lo, thr_hi }` in whole env-steps/s, as the page's button copies it."""
    curves: dict[str, list[str]] = {}
    for point in points:
        params, interval = dict(point.line.params), point.interval
        values = f"thr: {interval.mean:.0f}, thr_lo: {interval.low:.0f}, thr_hi: {interval.high:.0f}"
        curves.setdefault(chart_name(params), []).append(f"  {{ n: {params['num_envs']}, {values} }},\n")
    return "".join(f"const {name} = [\n{''.join(constants)}];\n" for name, constants in curves.items())


def _of_one_chart(points: list[Point]) -> list[Point]:
    """Return the measured points; raise `VelocityError` unless they are of one release, setup and benchmark."""
    measured = [point for point in points if point.status == "measured"]
    if not measured:
        raise VelocityError("nothing of what was selected was measured")
    values = {name: sorted(set(map(value, measured)), key=natural_key) for name, value in selection.SELECTABLE.items()}
    if several := {name: known for name, known in values.items() if len(known) > 1}:
        choices = "; ".join(f"{selection.option(name)}: {', '.join(known)}" for name, known in several.items())
        raise VelocityError(f"a chart is of one release, benchmark and setup: choose by {choices}")
    return measured


def _row(results: Results, change: Change) -> Row:
    """One cell of one release; values that do not exist are None."""
    point, verdict = change.point, change.verdict
    interval = point.interval if point.status == "measured" else None
    step = verdict.step
    low, high = (step and step.interval) or (None, None)
    return {
        "series": point.line.series,
        "release": point.release.name,
        "date": f"{point.release.date:%Y-%m-%d}",
        "commit": results.hashes[point.release.name],
        **dataclasses.asdict(point.line.setup),
        "agent": selection.SELECTABLE["agent"](point),
        "benchmark": point.line.benchmark,
        **{name: int(value) if name == "num_envs" else value for name, value in point.line.params},
        "unit": point.unit,
        "status": point.status,
        "mean": interval and interval.mean,
        "half_width": interval and interval.half_width,
        "median": point.median,
        "processes": len(point.processes) if interval else None,
        "windows": len(point.samples) if interval else None,
        "updates_per_env_step": point.updates_per_env_step,
        "verdict": verdict.word,
        "before": step and step.before.release.name,
        "ratio": step and round(step.ratio, 4),
        "ratio_low": low and round(low, 4),
        "ratio_high": high and round(high, 4),
        "reason": verdict.reason,
    }


def _csv(rows: list[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, _columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _json(rows: list[Row]) -> bytes:
    return json.dumps(rows, indent=1).encode() + b"\n"


def _markdown(rows: list[Row]) -> bytes:
    lines = [MARKDOWN_COLUMNS, ["---"] * len(MARKDOWN_COLUMNS)]
    rows = [{**row, "loop": driver(row)} for row in rows]
    lines += [[_markdown_cell(column, row.get(column)) for column in MARKDOWN_COLUMNS] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).encode()


def _markdown_cell(column: str, value: Any) -> str:
    if column == "benchmark":
        return benchmark_label(value)
    text = f"{value:,.0f}" if isinstance(value, float) else "" if value is None else str(value)
    return text.replace("|", "\\|")


def _parquet(rows: list[Row]) -> bytes:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise VelocityError("parquet needs pyarrow, which is not installed: pip install pyarrow") from error
    buffer = io.BytesIO()
    columns = _columns(rows)
    parquet.write_table(pa.table({column: [row.get(column) for row in rows] for column in columns}), buffer)
    return buffer.getvalue()


def _columns(rows: list[Row]) -> list[str]:
    """All columns: benchmarks may differ in their parameters."""
    return list(dict.fromkeys(column for row in rows for column in row))


TABLES: dict[str, Callable[[list[Row]], bytes]] = {
    "csv": _csv,
    "json": _json,
    "markdown": _markdown,
    "parquet": _parquet,
}
# From the points of a chart, and from all there are.
CHARTS: dict[str, Callable[[Sequence[Point], Sequence[Point]], str]] = {"js": chart_constants, "svg": figure.draw}
FORMATS = (*CHARTS, *TABLES)
