"""One run of a cell serves both of its measures, wall and CPU time, within one asv command.

asv runs every benchmark method in a process of its own and shares a `setup_cache` only between cells, so the
measure that comes first leaves its result in a file beside asv's environment, and its sibling takes that once.
Results are never taken across commands or commits: a file is named after both.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ale_velocity.cell import write_json
from ale_velocity.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ale_velocity.cell import Cell

MEASURES = ("wall", "cpu")


def run_once(
    cell: Cell, measure: str, run: Callable[[], dict[str, Any]], environ: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Return what the sibling of `measure` left for this cell, or else the result of `run`, left for the sibling.

    Without asv's variables, or without the command's name from our asv environment, nothing is shared.
    """
    command, folder = environ.get(PREFIX + "COMMAND"), environ.get("ASV_ENV_DIR")
    if not (command and folder):
        return run()
    shared = Path(folder) / "shared" / command
    (sibling,) = set(MEASURES) - {measure}
    identity = json.dumps([environ.get("ASV_COMMIT"), dataclasses.asdict(cell)])
    name = hashlib.sha256(identity.encode()).hexdigest()
    mine = shared / f"{name}.{measure}.json"
    if mine.exists():
        result = json.loads(mine.read_text(encoding="utf-8"))
        mine.unlink()
        return result
    result = run()
    _only(shared)
    write_json(shared / f"{name}.{sibling}.json", result)
    return result


def _only(folder: Path) -> None:
    """Make the folder, and remove what earlier commands left beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.parent.iterdir():
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
