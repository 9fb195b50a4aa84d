"""The facts of the machine are kept once an asv command, before its first cell."""

import json

import pytest

from ale_velocity import facts
from ale_velocity.asv_plugin import environment, machine


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """An environment whose runs are only noted: `(arguments, variables)` each."""
    noted = []
    monkeypatch.setattr(environment.Virtualenv, "run", lambda _self, args, env: noted.append((args, env)))
    monkeypatch.setattr(machine, "name", lambda: "here")
    monkeypatch.setattr(facts, "gather", lambda: {"load": 0.5})
    one = object.__new__(environment.StackEnvironment)
    one._results_dir, one._command, one._facts_kept = tmp_path, "7-1", False
    return one, noted


def test_facts_are_kept_before_the_first_cell_only(runs, tmp_path):
    """Discovery and pip keep none; the second cell adds none; both cells know their name, command and records."""
    one, noted = runs
    records = tmp_path / "here" / "machine.jsonl"
    one.run(["benchmark.py", "discover", "benchmarks"], env={})
    assert not records.exists()
    one.run(["benchmark.py", "run", "benchmarks", "cell-0"], env={"KEPT": "1"})
    one.run(["benchmark.py", "run", "benchmarks", "cell-1"], env={})

    (line,) = records.read_text().splitlines()
    kept = json.loads(line)
    assert (kept["command"], kept["load"]) == ("7-1", 0.5)
    assert noted[1][1] == {
        "KEPT": "1",
        "ALE_VELOCITY_RECORDS": str(tmp_path / "here" / "cells.jsonl"),
        "ALE_VELOCITY_COMMAND": "7-1",
        "ALE_VELOCITY_BENCHMARK": "cell-0",
    }
