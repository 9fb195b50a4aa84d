"""Data of the throughput page: an index, and a file for each benchmark, setup and series, loaded when chosen.

The files are scripts that call `aleVelocity.receive(name, data)`, because a page opened from a file share may not
read JSON. To keep 200 releases small, rows are arrays, whose places `COLUMNS` names, and reasons are written once.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from typing import TYPE_CHECKING, Any

from ale_velocity.envs import FRAMESKIP
from ale_velocity.site import links
from ale_velocity.site.points import benchmark_label, chart_name
from ale_velocity.site.verdicts import WORDS
from ale_velocity.units import direction

if TYPE_CHECKING:
    from pathlib import Path

    from ale_velocity.site.points import Line, Results, Setup
    from ale_velocity.site.verdicts import Change

COLUMNS = (
    *("release", "mean", "half_width", "median", "processes", "windows", "updates"),
    *("verdict", "before", "ratio", "low", "high", "reason"),
)


def write(results: Results, changes: list[Change], folder: Path) -> None:
    """Write `index.js` and `0.js`, `1.js`, ... into `folder`, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files: dict[tuple[str, Setup, str], list[Change]] = {}
    for change in changes:
        line = change.point.line
        files.setdefault((line.benchmark, line.setup, line.series), []).append(change)
    entries = []
    for number, ((benchmark, setup, series), members) in enumerate(files.items()):
        _write(folder / f"{number}.js", str(number), _file(members, results.positions))
        measured = sum(change.point.status == "measured" for change in members)
        names = {"benchmark": benchmark, "series": series, **dataclasses.asdict(setup)}
        entries.append({"file": number, "measured": measured, **names})
    units = {point.line.benchmark: point.unit for point in results.points}
    index = {
        "columns": COLUMNS,
        "verdicts": WORDS,
        "frameskip": FRAMESKIP,
        "files": entries,
        "benchmarks": {
            name: {"label": benchmark_label(name), "unit": unit, "direction": direction(unit)}
            for name, unit in sorted(units.items())
        },
        "series": [
            {"name": one.name, "package": one.package, "releases": [_release(results, one, r) for r in one.releases]}
            for one in results.series
        ],
    }
    _write(folder / "index.js", "index", index)


def _release(results: Results, series: Any, release: Any) -> dict[str, str]:
    return {
        "version": release.version,
        "name": release.name,
        "date": f"{release.date:%Y-%m-%d}",
        "note": release.note,
        "page": links.release_page(results.hashes[release.name]),
        "notes": links.release_notes(series.package, release.version),
    }


def _file(changes: list[Change], positions: dict[str, int]) -> dict[str, Any]:
    """Return one file: its reasons, and its lines as parameters, name of their chart constants, and a row a point."""
    reasons: dict[str, int] = {"": 0}
    lines: dict[Line, list[Any]] = {}
    for change in changes:
        lines.setdefault(change.point.line, []).append(_row(change, positions, reasons))
    entries = [
        {"params": dict(line.params), "constants": chart_name(dict(line.params)), "rows": rows}
        for line, rows in lines.items()
    ]
    return {"reasons": list(reasons), "lines": entries}


def _row(change: Change, positions: dict[str, int], reasons: dict[str, int]) -> list[Any]:
    """Return a point's values in the order of `COLUMNS`, without trailing empty ones; a new reason joins `reasons`."""
    point, verdict = change.point, change.verdict
    measured: list[Any] = [None] * 6
    if point.status == "measured":
        interval = point.interval
        counts = (len(point.processes), len(point.samples))
        measured = [interval.mean, interval.half_width, point.median, *counts, point.updates_per_env_step]
    step: list[Any] = [None] * 4
    if verdict.step:
        ratios = (verdict.step.ratio, *(verdict.step.interval or ()))
        step = [positions[verdict.step.before.release.name], *(round(ratio, 4) for ratio in ratios)]
        step += [None] * (4 - len(step))
    reason = reasons.setdefault(verdict.reason, len(reasons))
    row = [positions[point.release.name], *measured, WORDS.index(verdict.word), *step, reason]
    while not row[-1]:
        row.pop()
    return row


def _write(path: Path, name: str, data: Any) -> None:
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    path.write_text(f"aleVelocity.receive({json.dumps(name)},{text});\n", encoding="utf-8")
