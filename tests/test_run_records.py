"""The facts of the machine are kept once an asv command, before its first cell; its name stays that machine's."""

import json

import pytest
from asv.machine import Machine

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
    one.results_dir, one._command, one._facts_kept = tmp_path, "7-1", False
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


@pytest.fixture
def saved(monkeypatch, tmp_path):
    """Save the machine `here`, now with other facts; returns its description's file."""

    def save(**changed):
        monkeypatch.setattr(facts, "gather", lambda: {**KNOWN, "variables": {}, **changed})
        described = Machine()
        described.machine = "here"
        machine.unchanged(Machine.save)(described, str(tmp_path))
        return tmp_path / "here" / "machine.json"

    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "machine.jsonl").write_text(json.dumps(KNOWN) + "\n")
    return save


KNOWN = {"name": "here", "cpu": "Fast CPU", "usable_cpus": 2, "num_cpus": 4, "gpus": [], "load": 0.5}


def test_results_of_one_name_are_of_one_machine(saved, caplog):
    """Other hardware under a known name is refused before anything is written; it would look like a release's doing."""
    with pytest.raises(SystemExit) as end:
        saved(cpu="Slow CPU", gpus=[{"name": "NVIDIA H200"}])

    assert end.value.code == 2
    assert "of another machine (Fast CPU, 2 usable CPUs)" in caplog.text
    assert "this one (Slow CPU, 2 usable CPUs, NVIDIA H200)" in caplog.text
    assert "ALE_VELOCITY_MACHINE" in caplog.text


def test_variables_that_move_rates_belong_to_the_machine(saved, caplog):
    """The message says what may be unset; results from before variables were kept count as without any."""
    with pytest.raises(SystemExit):
        saved(variables={"OMP_WAIT_POLICY": "PASSIVE"})

    assert "this one (Fast CPU, 2 usable CPUs, OMP_WAIT_POLICY=PASSIVE)" in caplog.text
    assert "ALE_VELOCITY_MACHINE, or unset OMP_WAIT_POLICY" in caplog.text


def test_the_same_hardware_goes_on(saved):
    """Load, and CPUs of the host that this machine may not use, do not matter."""
    assert json.loads(saved(load=3.0, num_cpus=128).read_text())["machine"] == "here"
