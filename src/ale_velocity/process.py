"""Measure a cell in a fresh process: of this Python, or of another environment's."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ale_velocity.cell import EXIT_NOT_AVAILABLE, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ale_velocity.cell import Cell


def measure_in_process(
    cell: Cell,
    progress: Callable[[str], None],
    *,
    command: Sequence[str] = (sys.executable, "-m", "ale_velocity.cell"),
    pins: Sequence[str] = (),
) -> dict[str, Any]:
    """Measure a cell in a fresh process of `command`, passing on the lines of its progress.

    The process refuses to measure another stack than `pins`, PEP 508 requirements. Returns the result as JSON
    values, or the cell with `reason`, and `failed`, which is False where the cell is n/a.
    """
    with tempfile.TemporaryDirectory() as folder:
        spec, result = Path(folder) / "spec.json", Path(folder) / "result.json"
        write_json(spec, {"cell": dataclasses.asdict(cell), "pins": list(pins)})
        lines: list[str] = []
        with subprocess.Popen(
            [*command, str(spec), str(result)], stderr=subprocess.PIPE, text=True, errors="replace"
        ) as process:
            try:
                for line in process.stderr or ():
                    lines.append(line.strip())
                    progress(lines[-1])
            except BaseException:
                process.kill()  # Ctrl-C must not wait for the cell
                raise
        if process.returncode == 0:
            return json.loads(result.read_text(encoding="utf-8"))
        if result.exists():
            reason = json.loads(result.read_text(encoding="utf-8"))["reason"]
        else:
            reason = how_it_ended(process.returncode, lines)
    failed = process.returncode != EXIT_NOT_AVAILABLE
    return {"cell": dataclasses.asdict(cell), "reason": reason, "failed": failed}


def how_it_ended(code: int, lines: Sequence[str]) -> str:
    """Say how a process ended that left no result, from its exit code and the lines of its stderr."""
    for number, line in enumerate(lines):
        if line.startswith("Timeout ("):
            waited = line[len("Timeout (") : -len(")!")]
            return f"an env never returned: no progress for {waited}, in {_place(lines[number:])}"
        if line.startswith("Fatal Python error:"):
            return f"the process {_end(code)} in {_place(lines[number:])}"
    return f"the process {_end(code)}: {lines[-1] if lines else ''}"


def _end(code: int) -> str:
    return f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def _place(traceback: Sequence[str]) -> str:
    """Return the innermost Python frame of what faulthandler wrote, without the folders of this machine."""
    for line in traceback:
        if frame := re.match(r'\s*File "(.+)", (line \d+ in .+)', line):
            return f"{'/'.join(Path(frame[1]).parts[-2:])}, {frame[2].strip()}"
    return "an unknown place"
