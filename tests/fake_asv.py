"""Stands for `asv run` in tests of the sweep: stores results with asv's own code, and measures nothing.

`FAKE_ASV` is JSON: `log`, a file that gets a line for every cell; `seconds` that a cell takes; `slow`, `failing` and
`broken`, texts in the names of cells that take a minute, fail, or end asv with `code`. Cells of torch_ops are n/a.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

from asv.benchmarks import Benchmarks
from asv.results import Results
from asv.runner import BenchmarkResult

from ale_velocity.asv_plugin.history import History
from ale_velocity.cell import append_record


def main():
    told = json.loads(os.environ["FAKE_ASV"])
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["run"])
    parser.add_argument("range")
    parser.add_argument("--config", type=Path)
    parser.add_argument("--bench", action="append")
    parser.add_argument("-E", dest="environment")
    arguments = parser.parse_args()
    history = History(arguments.config, arguments.environment)
    release = arguments.range.removesuffix("^!")
    commit, environment, conf = history._hashes[release], history._environment, history._conf
    Path(environment._path).mkdir(parents=True, exist_ok=True)
    environment._set_installed_commit_hash(commit)
    folder = Path(conf.results_dir) / history.machine
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "machine.json").write_text(json.dumps({"machine": history.machine, "version": 1}))
    params = {"machine": history.machine, "python": environment.python}
    results = Results(params, {}, commit, 0, environment.python, environment.name, environment.env_vars)
    results.load_data(conf.results_dir)
    benchmarks = Benchmarks(conf, history._suite.values(), regex=arguments.bench)
    failures, kinds = False, history.kinds()
    for name, benchmark in sorted(benchmarks.items()):
        selected = benchmarks.benchmark_selection[name]
        cells = sorted((cell.place, cell, kind) for kind in kinds for cell in kind.cells if cell.method == name)
        measured = [
            measure(release, cell, kind, told) if place in selected else math.nan for place, cell, kind in cells
        ]
        for value, (_, cell, _) in zip(measured, cells, strict=True):
            if value is None:
                place = {"commit": commit, "environment": environment.name, "benchmark": cell.name}
                append_record(folder / "cells.jsonl", {**place, "command": "1", "reason": "it broke\nin two places"})
        failures = failures or any(value is None for value in measured)
        samples = [[value] * 2 if value and not math.isnan(value) else None for value in measured]
        numbers = [1 if sample else None for sample in samples]
        result = BenchmarkResult(measured, samples, numbers, 0, "", None)
        results.add_result(benchmark, result, duration=1.0, record_samples=True, selected_idx=selected)
        results.save(conf.results_dir)
    return 2 if failures else 0


def measure(release, cell, kind, told):
    """Return a rate, None for a failure, NaN for n/a."""
    name = f"{release} {cell.method}({cell.arguments})"
    if any(text in name for text in told.get("broken", [])):
        print("something is wrong with this asv", flush=True)
        sys.exit(told.get("code", 1))
    if any(text in name for text in told.get("slow", [])):
        print("asv takes its time", flush=True)
        time.sleep(60)
    time.sleep(told.get("seconds", 0))
    with Path(told["log"]).open("a") as log:
        log.write(name + "\n")
    if kind.loop == "torch_ops":
        return math.nan
    if any(text in name for text in told.get("failing", [])):
        return None
    print(f"{name}: measured", flush=True)
    return 1000.0


if __name__ == "__main__":
    sys.exit(main())
