"""What cells kept of their runs beside asv's results: `results/MACHINE/cells.jsonl`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Pace = list[float]  # `Measurement.pace_s`


class CellRecords:
    """The records of a machine's cells."""

    def __init__(self, results_dir: str | Path, machine: str) -> None:
        self._newest: dict[tuple[str, str, str], Record] = {}
        self._behaviours: dict[tuple[str, str, tuple[str, str]], str] = {}
        self._paces: dict[tuple[str, str, tuple[str, str]], list[Pace]] = {}
        for record in read(Path(results_dir) / machine / "cells.jsonl"):
            commit, environment, cell = record["commit"], record["environment"], record.get("benchmark") or ""
            self._newest[commit, environment, cell] = record
            if "behaviour" in record:
                self._behaviours[commit, environment, _without_method(cell)] = record["behaviour"]
            if "pace_s" in record:
                self._paces.setdefault((commit, environment, _without_method(cell)), []).append(record["pace_s"])

    @property
    def newest(self) -> list[Record]:
        """The newest record of each cell."""
        return list(self._newest.values())

    def record(self, commit: str, environment: str, cell: str) -> Record:
        """Return the newest record of a cell, by asv's name for it, see `cell_name`; empty where there is none."""
        return self._newest.get((commit, environment, cell), {})

    def behaviour(self, commit: str, environment: str, cell: str) -> str | None:
        """Return the newest fingerprint of a cell; None where none was recorded.

        It is that of all methods of the cell's class: they share a run, which is recorded for the first of them.
        """
        return self._behaviours.get((commit, environment, _without_method(cell)))

    def paces(self, commit: str, environment: str, cell: str, num_samples: int) -> list[Pace]:
        """Return what the processes behind a cell's samples read of the machine's pace; those that recorded it."""
        known = self._paces.get((commit, environment, _without_method(cell)), [])
        windows = len(known[-1]) - 1 if known else 1
        return known[-max(num_samples // windows, 1) :]


def cell_name(benchmark: str, params: Any, place: int | None) -> str:
    """Return asv's name for a benchmark with the parameters at a place of all their combinations."""
    return f"{benchmark}-{place}" if params else benchmark


def read(path: Path) -> list[Record]:
    """Return the records of a file, oldest first, without a line that a stop left half-written."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [record for line in lines if (record := _parsed(line))]


def _without_method(cell: str) -> tuple[str, str]:
    benchmark, _, place = cell.partition("-")
    return benchmark.rpartition(".")[0], place


def _parsed(line: str) -> Record | None:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
