"""What cells kept of their runs beside asv's results: `results/MACHINE/cells.jsonl`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Pace = list[float]  # `Measurement.pace_s`
Run = tuple[str, str, str, str]


class CellRecords:
    """The records of a machine's cells."""

    def __init__(self, results_dir: str | Path, machine: str) -> None:
        self._newest: dict[tuple[str, str, str], Record] = {}
        self._behaviours: dict[Run, str] = {}
        self._paces: dict[Run, list[Pace]] = {}
        for record in read(Path(results_dir) / machine / "cells.jsonl"):
            commit, environment, cell = record["commit"], record["environment"], record.get("benchmark") or ""
            self._newest[commit, environment, cell] = record
            run = _run(commit, environment, cell)
            if "behaviour" in record:
                self._behaviours[run] = record["behaviour"]
            if "pace_s" in record:
                self._paces.setdefault(run, []).append(record["pace_s"])

    @property
    def newest(self) -> list[Record]:
        """The newest record of each cell."""
        return list(self._newest.values())

    def record(self, commit: str, environment: str, cell: str) -> Record:
        """Return the newest record of a cell, by asv's name for it, see `cell_name`; empty where there is none."""
        return self._newest.get((commit, environment, cell), {})

    def behaviour(self, commit: str, environment: str, cell: str) -> str | None:
        """Return the newest fingerprint of a cell; None where none was recorded."""
        return self._behaviours.get(_run(commit, environment, cell))

    def paces(self, commit: str, environment: str, cell: str, num_samples: int) -> list[Pace]:
        """Return what the processes behind a cell's samples read of the machine's pace; those that recorded it."""
        known = self._paces.get(_run(commit, environment, cell), [])
        windows = len(known[-1]) - 1 if known else 1
        return known[-max(num_samples // windows, 1) :]


def cell_name(benchmark: str, params: Any, place: int | None) -> str:
    """Return asv's name for a benchmark with the parameters at a place of all their combinations."""
    return f"{benchmark}-{place}" if params else benchmark


def read(path: Path) -> list[Record]:
    """Return the records of a file, oldest first, without a line that a stop left half-written."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [record for line in lines if (record := _parsed(line))]


def _run(commit: str, environment: str, cell: str) -> Run:
    """Return what all methods of a cell's class share: one run, which is recorded for the first of them."""
    benchmark, _, place = cell.partition("-")
    return commit, environment, benchmark.rpartition(".")[0], place


def _parsed(line: str) -> Record | None:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
