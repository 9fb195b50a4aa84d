"""What an asv command keeps: facts of the machine before its first cell, and why a cell ended that could not say."""

import json
import os
import sys

import pytest
from asv import util
from asv.machine import Machine

from ale_velocity import facts
from ale_velocity.asv_plugin import environment, machine, records


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """An environment whose runs are only noted: `(arguments, variables)` each."""
    noted = []

    def note(_self, args, env):
        noted.append((args, env))
        return "", "", 0

    monkeypatch.setattr(environment.Virtualenv, "run", note)
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
def measured(monkeypatch, tmp_path):
    """Run a line of Python as asv runs a cell, and return the reasons that are kept then."""

    def in_python(_self, args, env):
        return util.check_output(
            [sys.executable, "-c", args[-1]],
            return_stderr=True,
            redirect_stderr=True,
            display_error=False,
            valid_return_codes=None,
            timeout=1 if "sleep" in args[-1] else 60,
            env=env,
        )

    monkeypatch.setattr(environment.Virtualenv, "run", in_python)
    monkeypatch.setattr(environment.StackEnvironment, "installed_commit_hash", "c0ffee")
    monkeypatch.setattr(environment.StackEnvironment, "name", "stack")
    monkeypatch.setattr(machine, "name", lambda: "here")
    one = object.__new__(environment.StackEnvironment)
    one.results_dir, one._command, one._facts_kept = tmp_path, "7-1", True

    def measure(code):
        one.run(["benchmark.py", "run", "benchmarks", "cell-0", code], env=dict(os.environ))
        return records.CellRecords(tmp_path, "here").record("c0ffee", "stack", "cell-0").get("reason")

    return measure


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; print('window 1'); os.abort()", "the process died of SIGABRT"),
        ("raise ValueError('no ROM')", "the process ended with code 1: ValueError: no ROM"),
        ("import time; time.sleep(60)", "it took longer than its benchmark's timeout"),
    ],
    ids=["crash", "error", "timeout"],
)
def test_why_a_process_ended_that_could_not_say(measured, code, reason):
    assert measured(code).startswith(reason)


@pytest.mark.parametrize("code", ["0", "1"])
def test_a_process_that_keeps_a_record_needs_no_other(measured, code):
    """The reason that it knows itself is the better one."""
    known = {"commit": "c0ffee", "environment": "stack", "benchmark": "cell-0", "reason": "its own"}
    write = "import os, pathlib; from ale_velocity import cell; "
    write += f"cell.append_record(pathlib.Path(os.environ['ALE_VELOCITY_RECORDS']), {known})"
    assert measured(f"{write}; raise SystemExit({code})") == "its own"


@pytest.mark.parametrize(
    ("described", "given", "name"),
    [
        (["laptop"], None, "laptop"),
        (["laptop"], "node", "node"),
        (["laptop", "node"], None, "host"),
        ([], None, "host"),
    ],
)
def test_the_name_is_that_under_which_asv_would_file_results(tmp_path, monkeypatch, described, given, name):
    """The given one; else the only one that `asv machine` described; else the host's."""
    monkeypatch.setattr(machine, "_loaded", [])
    monkeypatch.setattr(Machine, "hardcoded_machine_name", given)
    monkeypatch.setattr("asv.machine._get_unique_machine_name", lambda: "host")
    monkeypatch.setenv("HOME", str(tmp_path))
    entries = {entry: {"machine": entry} for entry in described}
    (tmp_path / ".asv-machine.json").write_text(json.dumps({**entries, "version": 1}))
    assert machine.name() == name


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


def test_another_cpu_of_the_same_name_is_another_machine(saved, caplog):
    """Clouds name whole families alike; a machine whose results know the name only takes what is told now."""
    saved(cpu_model="family 26 model 2")
    known = saved().parent / "machine.jsonl"
    known.write_text(json.dumps({**KNOWN, "cpu_model": "family 25 model 17"}) + "\n")
    with pytest.raises(SystemExit):
        saved(cpu_model="family 26 model 2")

    assert "of another machine (Fast CPU (family 25 model 17), 2 usable CPUs)" in caplog.text


def test_variables_that_move_rates_belong_to_the_machine(saved, caplog):
    """The message says what may be unset; results from before variables were kept count as without any."""
    with pytest.raises(SystemExit):
        saved(variables={"OMP_WAIT_POLICY": "PASSIVE"})

    assert "this one (Fast CPU, 2 usable CPUs, OMP_WAIT_POLICY=PASSIVE)" in caplog.text
    assert "ALE_VELOCITY_MACHINE, or unset OMP_WAIT_POLICY" in caplog.text


def test_the_same_hardware_goes_on(saved):
    """Load, and CPUs of the host that this machine may not use, do not matter."""
    assert json.loads(saved(load=3.0, num_cpus=128).read_text())["machine"] == "here"
