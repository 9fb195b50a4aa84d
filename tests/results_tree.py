"""A project folder with made-up results, written by asv's own code as `asv run` would write them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from asv.results import Results
from asv.runner import BenchmarkResult

from ale_velocity.cell import Cell, append_record
from ale_velocity.measure import COUNTS, PROTOCOLS
from ale_velocity.timeline import manifest, writer

ROOT = Path(__file__).parents[1]
DQN = "dqn.DqnTraining.track_env_steps_per_second"
EMULATOR = "emulator.EmulatorOnly.track_env_steps_per_second"
MEASURED_AT = dt.datetime(2026, 11, 1, 12, tzinfo=dt.timezone.utc)


class ResultsTree:
    """`folder` gets the repository's configuration and manifest (or another one), and results on request."""

    def __init__(self, folder: Path, manifest_text: str | None = None) -> None:
        self.folder = folder
        shutil.copyfile(ROOT / "asv.conf.json", folder / "asv.conf.json")
        text = (ROOT / "releases.toml").read_text() if manifest_text is None else manifest_text
        (folder / "releases.toml").write_text(text)
        (folder / "benchmarks").mkdir()
        (folder / "benchmarks" / "__init__.py").touch()
        self.results = folder / "results"
        self.results.mkdir()
        self.hashes = writer.build(folder / "releases.toml")
        self.releases = manifest.all_releases(manifest.load(folder / "releases.toml"))
        self.benchmarks: dict[str, dict] = {}
        for name in (DQN, EMULATOR):
            self.add_benchmark(name)

    def add_benchmark(self, name, *, loops=("step", "send_recv"), counts=COUNTS, unit="env-steps/s", param="loop"):
        """Describe a benchmark as asv's discovery would."""
        self.benchmarks[name] = {
            "code": f"class {name.split('.')[1]}: ...",
            "name": name,
            "param_names": [param, "num_envs"],
            "params": [[repr(loop) for loop in loops], [repr(count) for count in counts]],
            "timeout": 3600,
            "type": "track",
            "unit": unit,
            "version": "1-00000000",
        }
        (self.results / "benchmarks.json").write_text(json.dumps({**self.benchmarks, "version": 2}, indent=4))

    def add_machine(self, name, **facts):
        """Describe a machine as `asv machine` would."""
        (self.results / name).mkdir()
        defaults = {"arch": "x86_64", "cpu": "Made-up CPU", "num_cpu": "16", "os": "Linux", "ram": "137438953472"}
        text = json.dumps({**defaults, **facts, "machine": name, "version": 1})
        (self.results / name / "machine.json").write_text(text)

    def add_duel(self, machine, before, after, *sides, behaviours=("1-a", "1-a")):
        """Add a duel of the emulator with 8 envs: `sides` are (rate before, rate after) of each pair."""
        stacks = [{"name": name, "pins": self.releases[name].requirements} for name in (before, after)]
        cell = Cell("emulator", "step", 8, PROTOCOLS["quick"])

        def result(rate, behaviour):
            rates = {"samples": [rate, rate], "cpu_samples": [rate / 2, rate / 2]}
            return {**rates, "facts": {"device": "none"}, "behaviour": behaviour}

        pairs = [
            {"cell": 0, "pair": number, "first": number % 2, "results": list(map(result, rates, behaviours))}
            for number, rates in enumerate(sides)
        ]
        duel = {"schema": 1, "stacks": stacks, "cells": [dataclasses.asdict(cell)], "machine": {"name": machine}}
        path = self.folder / "docs" / "duels" / machine / f"{before}-{after}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**duel, "starts": [], "gaps": [], "pairs": pairs}))
        return path

    def add(self, machine, release, benchmark, cells, *, measured_at=MEASURED_AT, **env_vars):
        """Add results: `cells` maps (loop, num_envs) to samples, to None (failed) or to NaN (n/a).

        What is not there was not asked for; asv stores the same as for n/a, which has a record beside it.
        """
        described = self.benchmarks[benchmark]
        variables = {"PROTOCOL": "standard", "DEVICE": "cpu", "GAME": "pong", "TORCH_THREADS": "default", **env_vars}
        variables = {f"ALE_VELOCITY_{name}": value for name, value in variables.items()}
        environment = "-".join(["stack-py3.11", *sorted(name + value for name, value in variables.items())])
        results = Results(
            {"machine": machine, "python": "3.11", "cpu": "Made-up CPU"},
            {},
            self.hashes[release],
            int(self.releases[release].date.timestamp() * 1000),
            "3.11",
            environment,
            variables,
        )
        results.load_data(str(self.results))
        samples, values = [], []
        for place, (loop, count) in enumerate(itertools.product(*described["params"])):
            key = loop.strip("'"), int(count)
            cell = cells.get(key, math.nan)
            if key in cells and isinstance(cell, float):
                self.record(machine, release, environment, f"{benchmark}-{place}", "made up to be n/a")
            is_measured = isinstance(cell, list)
            samples.append(cell if is_measured else None)
            values.append(statistics.median(cell) if is_measured else cell)
        numbers = [None if sample is None else 1 for sample in samples]
        measured = BenchmarkResult(values, samples, numbers, 0, "", None)
        results.add_result(described, measured, started_at=measured_at, duration=1.0, record_samples=True)
        results.save(str(self.results))
        return environment

    def record(self, machine, release, environment, cell, reason):
        """Keep beside the results why a cell has none."""
        record = {"commit": self.hashes[release], "environment": environment, "benchmark": cell, "reason": reason}
        append_record(self.results / machine / "cells.jsonl", record)

    def asv(self, *arguments, **environ):
        """Run asv in the folder; return the finished process."""
        return self._run("asv", *arguments, **environ)

    def velocity(self, *arguments):
        """Run `ale-velocity` in the folder; return the finished process."""
        return self._run("ale_velocity.cli", *arguments)

    def _run(self, module, *arguments, **environ):
        environment = {**os.environ, "HOME": str(self.folder), "PYTHONPATH": str(ROOT / "src"), **environ}
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=300
        )


def windows(rate, *, processes=1, spread=0.01, reps=5):
    """Samples around `rate`, the same in every call: processes differ by `spread`, windows by half of it."""
    samples = []
    for process in range(processes):
        middle = rate * (1 + spread * math.sin(2.4 * process + rate))
        samples += [float(f"{middle * (1 + spread / 2 * math.sin(1.7 * window)):.4g}") for window in range(reps)]
    return samples


def curve(scale, *, counts=COUNTS, gain=1.1, **kwargs):
    """Cells of both loops that look like a training loop: rising, then levelling off."""
    cells = {}
    for count in counts:
        rate = scale * 900 * count / (1 + count / 20)
        cells["step", count] = windows(rate, **kwargs)
        cells["send_recv", count] = windows(rate * gain, **kwargs)
    return cells
