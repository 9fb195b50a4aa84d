"""The declarations that asv discovers."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest
from asv_runner.benchmarks.mark import SkipNotImplemented

from ale_velocity import envs, stack, suite
from ale_velocity.behaviour import fingerprint
from ale_velocity.errors import NotAvailableError, VelocityError
from ale_velocity.loops import LOOPS
from ale_velocity.measure import COUNTS
from conftest import ROOT


@pytest.fixture(scope="module")
def discovered(tmp_path_factory):
    """Return what asv's own discovery finds in benchmarks/, by name."""
    root = ROOT
    result = tmp_path_factory.mktemp("discovery") / "result.json"
    code = f"from asv_runner.discovery import _discover; _discover(({str(root / 'benchmarks')!r}, {str(result)!r}))"
    subprocess.run([sys.executable, "-c", code], check=True)
    return {benchmark["name"]: benchmark for benchmark in json.loads(result.read_text())}


def test_the_suite(discovered):
    """Scenarios over loops, or baselines, and whole-number counts, with versions and timeouts of their own."""
    units = {
        "track_env_steps_per_second": "env-steps/s",
        "track_env_steps_per_cpu_second": "env-steps/CPU-s",
        "track_overlap_efficiency": "percent of ceiling",
    }
    assert sorted(discovered) == [
        "baselines.Baselines.track_env_steps_per_second",
        "dqn.DqnFixedReplayRatio.track_env_steps_per_second",
        "dqn.DqnTraining.track_env_steps_per_cpu_second",
        "dqn.DqnTraining.track_env_steps_per_second",
        "dqn.DqnTrainingGraphed.track_env_steps_per_second",
        "emulator.EmulatorOnly.track_env_steps_per_cpu_second",
        "emulator.EmulatorOnly.track_env_steps_per_second",
        "learner.LearnerOnly.track_env_steps_per_second",
        "overlap.OverlapEfficiency.track_overlap_efficiency",
        "ppo.PpoTraining.track_env_steps_per_second",
        "ppo.PpoTrainingGraphed.track_env_steps_per_second",
    ]
    for name, benchmark in discovered.items():
        (kind, _), (kinds, counts) = benchmark["param_names"], benchmark["params"]
        assert set(kinds) <= {repr(name) for name in {"loop": LOOPS, "baseline": suite.BASELINES}[kind]}
        assert counts == [str(count) for count in COUNTS]
        assert (benchmark["unit"], benchmark["timeout"]) == (units[name.rpartition(".")[2]], 3600)


def test_declarations_import_nothing_heavy(root):
    """At the top of a benchmark module there is the standard library or nothing: CUDA needs a fresh process."""
    for path in (root / "benchmarks").glob("*.py"):
        tops = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {alias.name for node in tops for alias in node.names if isinstance(node, ast.Import)}
        names |= {node.module for node in tops if isinstance(node, ast.ImportFrom)}
        assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_a_count_outside_the_protocol_is_not_available(monkeypatch):
    """The quick protocol skips the other counts with a sentence."""
    monkeypatch.setenv("ALE_VELOCITY_PROTOCOL", "quick")
    monkeypatch.setattr(stack, "check_pins", lambda: None)
    suite.require(8)
    with pytest.raises(SkipNotImplemented, match="the quick protocol measures 1, 8 envs"):
        suite.require(16)


def test_a_release_without_the_vector_env_is_skipped(monkeypatch, tmp_path):
    """asv shows n/a and the reason, which is recorded: without, the cell would look as if never asked for."""

    def missing():
        raise NotAvailableError("ale-py 0.10.2 has no AtariVectorEnv")

    monkeypatch.setattr(stack, "check_pins", lambda: None)
    monkeypatch.setattr(envs, "require_vector_env", missing)
    monkeypatch.setenv("ALE_VELOCITY_RECORDS", str(tmp_path / "cells.jsonl"))
    with pytest.raises(SkipNotImplemented, match="0.10.2 has no AtariVectorEnv"):
        suite.require(8)
    assert json.loads((tmp_path / "cells.jsonl").read_text())["reason"] == "ale-py 0.10.2 has no AtariVectorEnv"


def test_a_mismatch_of_pins_comes_first(monkeypatch):
    """A stack that is not the commit's fails, even where the cell would be n/a."""

    def mismatch():
        raise stack.StackMismatchError("pins 0.11.2, installed is 0.11.0")

    monkeypatch.setattr(stack, "check_pins", mismatch)
    monkeypatch.setenv("ALE_VELOCITY_PROTOCOL", "quick")
    with pytest.raises(VelocityError, match="pins 0.11.2"):
        suite.require(16)


def test_a_cell_that_turns_out_not_available_says_why(monkeypatch, capsys):
    """asv prints the reason of a skip in a setup only: one in the measurement prints it itself."""
    monkeypatch.setenv("ALE_VELOCITY_PROTOCOL", "quick")
    monkeypatch.setenv("ALE_VELOCITY_DEVICE", "cpu")
    with pytest.raises(SkipNotImplemented, match="graphed learner needs a CUDA device"):
        suite.measure_cell("dqn", "step", 1, learner="graphed")
    assert "asv: skipped: SkipNotImplemented('the graphed learner needs a CUDA device" in capsys.readouterr().out


def test_a_measured_cell_gives_samples_and_a_record(monkeypatch, tmp_path):
    """asv gets samples; the record beside the results gets windows, facts, commit and environment."""
    monkeypatch.setenv("ALE_VELOCITY_PROTOCOL", "quick")
    monkeypatch.setenv("ALE_VELOCITY_RECORDS", str(tmp_path / "cells.jsonl"))
    monkeypatch.setenv("ASV_COMMIT", "e7f87c82")
    result = suite.measure_cell("emulator", "send_recv", 1)
    assert result["number"] == 1
    (line,) = (tmp_path / "cells.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["samples"] == result["samples"]
    assert record["behaviour"] == fingerprint("ale", "pong")
    assert (record["commit"], len(record["windows"]), record["facts"]["num_threads"]) == ("e7f87c82", 2, 1)
