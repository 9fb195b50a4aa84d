"""Measure a cell in a fresh process: of this Python, or of another environment's."""

from __future__ import annotations

import dataclasses
import json
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
        last_line = ""
        with subprocess.Popen(
            [*command, str(spec), str(result)], stderr=subprocess.PIPE, text=True, errors="replace"
        ) as process:
            try:
                for line in process.stderr or ():
                    last_line = line.rstrip()
                    progress(last_line)
            except BaseException:
                process.kill()  # Ctrl-C must not wait for the cell
                raise
        if process.returncode == 0:
            return json.loads(result.read_text(encoding="utf-8"))
        if result.exists():
            reason = json.loads(result.read_text(encoding="utf-8"))["reason"]
        else:
            reason = f"the process ended with code {process.returncode}: {last_line}"
    failed = process.returncode != EXIT_NOT_AVAILABLE
    return {"cell": dataclasses.asdict(cell), "reason": reason, "failed": failed}
