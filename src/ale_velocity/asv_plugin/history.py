"""What of a history is measured: the suite's cells, and what asv has stored of them for this machine and environment.

asv stores NaN for a cell that is n/a as for one that never ran. `runs.jsonl` beside the results therefore keeps which
cells a run of a sweep has tried, and how long it took.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asv import runner, util
from asv.environment import get_environments
from asv.results import iter_results_for_machine

from ale_velocity.asv_plugin import machine, records, stored
from ale_velocity.asv_plugin.results import values_of
from ale_velocity.cell import append_record
from ale_velocity.errors import VelocityError
from ale_velocity.settings import PREFIX
from ale_velocity.sweep.estimate import Observed
from ale_velocity.sweep.plan import FAILED, MEASURED, NOT_AVAILABLE, Cell, Kind, State
from ale_velocity.timeline import manifest, writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ale_velocity.sweep.plan import Run

RUNS = "runs.jsonl"


class History:
    """The releases, the suite and the results of an asv configuration, in the one environment that it has.

    `environment` is asv's -E, None for the configuration's own. Raises `VelocityError` for what cannot be read.
    """

    def __init__(self, config: Path, environment: str | None = None) -> None:
        self._conf = stored.load_config(config)
        path = Path(self._conf.repo)
        self._hashes = writer.build(path)
        self.series = manifest.load(path)
        machine.use_given_name()
        self.machine = machine.name()
        self._environment = self._only_environment(environment)
        self._suite = {benchmark["name"]: benchmark for benchmark in self._discover()}

    @property
    def environment(self) -> str:
        """asv's name of the environment, part of a result's identity."""
        return self._environment.name

    @property
    def python(self) -> str:
        """The environment's Python, such as 3.11."""
        return self._environment.python

    @property
    def protocol(self) -> str:
        """The protocol that its cells run."""
        return self._environment.env_vars[PREFIX + "PROTOCOL"]

    @property
    def is_new(self) -> bool:
        """Whether the environment has yet to be made."""
        return not Path(self._environment._path).exists()  # noqa: SLF001 (asv has no other word for it)

    @property
    def installed(self) -> str | None:
        """The release that the environment holds now."""
        commit = self._environment.installed_commit_hash
        return next((name for name, known in self._hashes.items() if known == commit), None)

    def kinds(self) -> list[Kind]:
        """Return all kinds of runs that the suite has, in its order; benchmarks without an env count are none."""
        cells: dict[tuple[str, str, int], list[Cell]] = {}
        for name, benchmark in self._suite.items():
            if "num_envs" not in benchmark["param_names"]:
                continue
            for place, words in enumerate(itertools.product(*benchmark["params"])):
                given = dict(zip(benchmark["param_names"], words, strict=True))
                num_envs = int(given.pop("num_envs"))
                key = name.split(".")[1], ", ".join(word.strip("'") for word in given.values()), num_envs
                cells.setdefault(key, []).append(Cell(name, place, ", ".join(words)))
        return [Kind(*key, tuple(of_kind)) for key, of_kind in cells.items()]

    def state(self) -> State:
        """Return what is stored, but for results of another version of their benchmark."""
        names = {commit: name for name, commit in self._hashes.items()}
        tried = {
            (record["commit"], cell, version) for record in self._runs() for cell, version in record["cells"].items()
        }
        state: State = {}
        for result in iter_results_for_machine(self._conf.results_dir, self.machine):
            if result.env_name != self.environment or result.commit_hash not in names:
                continue
            for method in result.get_result_keys(self._suite):
                version = self._suite[method]["version"]
                for place, value in enumerate(values_of(result, method, self._suite[method]["params"])):
                    cell = f"{method}-{place}"
                    if value is None:
                        state[names[result.commit_hash], cell] = FAILED
                    elif not math.isnan(value):
                        state[names[result.commit_hash], cell] = MEASURED
                    elif (result.commit_hash, cell, version) in tried:
                        state[names[result.commit_hash], cell] = NOT_AVAILABLE
        return state

    def add_run(self, run: Run, cells: Iterable[Cell], seconds: float, *, installed: bool) -> None:
        """Keep that a run was finished by asv: every one of these cells was tried, and has a value, failed, or is n/a.

        `installed` says that its seconds hold the installation of its release.
        """
        versions = {cell.name: self._suite[cell.method]["version"] for cell in cells}
        append_record(
            self._folder / RUNS,
            {
                "commit": self._hashes[run.release],
                "environment": self.environment,
                "installed": installed,
                "seconds": round(seconds, 1),
                "cells": versions,
            },
        )

    def reason(self, run: Run) -> str:
        """Return why a run failed or is n/a, as far as it is known; else nothing."""
        known = records.CellRecords(self._conf.results_dir, self.machine)
        place = self._hashes[run.release], self.environment
        reasons = (known.record(*place, cell.name).get("reason") for cell in run.kind.cells)
        return next(filter(None, reasons), "")

    def observed(self) -> Observed:
        """Return how long measured runs took on this machine and environment, sweeps' and others'."""
        by_cell = {cell.name: kind for kind in self.kinds() for cell in kind.cells}
        names = {commit: name for name, commit in self._hashes.items()}
        state = self.state()
        observed = Observed([], [], [])
        for record in self._runs():
            states = {state.get((names.get(record["commit"], ""), cell)) for cell in record["cells"]}
            kind = by_cell.get(next(iter(record["cells"])))
            if kind is None:
                continue
            if states == {NOT_AVAILABLE}:
                observed.not_available.append(kind)
            elif FAILED not in states:
                (observed.installing if record["installed"] else observed.runs).append((kind, record["seconds"]))
        observed.runs.extend(self._between_cells(by_cell))
        return observed

    def _between_cells(self, by_cell: dict[str, Kind]) -> Iterator[tuple[Kind, float]]:
        """Yield seconds of the processes of plain asv commands: from the end of one to the end of the next."""
        ended: dict[str, dt.datetime] = {}
        for record in records.read(self._folder / "cells.jsonl"):
            command, at = record["command"], dt.datetime.fromisoformat(record["at"])
            before, ended[command] = ended.get(command), at
            kind = by_cell.get(record.get("benchmark") or "")
            if before and kind and record["environment"] == self.environment and "windows" in record:
                yield kind, (at - before).total_seconds()

    def _runs(self) -> list[dict[str, Any]]:
        return [one for one in records.read(self._folder / RUNS) if one["environment"] == self.environment]

    @property
    def _folder(self) -> Path:
        return Path(self._conf.results_dir) / self.machine

    def _only_environment(self, environment: str | None) -> Any:
        try:
            found = list(get_environments(self._conf, [environment] if environment else None))
        except util.UserError as error:
            raise VelocityError(str(error)) from error
        if len(found) != 1:
            names = "".join(f"\n{one.name}" for one in found)
            raise VelocityError(
                f"a sweep fills one environment, here are {len(found)}: choose with --environment{names}"
            )
        return found[0]

    def _discover(self) -> list[dict[str, Any]]:
        """Ask asv's own script, in this Python: benchmarks import nothing but the standard library at the top."""
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder) / "suite.json"
            command = [sys.executable, runner.BENCHMARK_RUN_SCRIPT, "discover", self._conf.benchmark_dir, str(answer)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            if done.returncode:
                raise VelocityError(f"{self._conf.benchmark_dir} cannot be read:\n{done.stderr.strip()}")
            return json.loads(answer.read_text(encoding="utf-8"))
