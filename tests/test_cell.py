"""A cell in its own process, and the files it leaves."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import subprocess
import sys

import pytest

from ale_velocity import breakdown, envs, process
from ale_velocity import cell as cells
from ale_velocity.behaviour import fingerprint
from ale_velocity.cell import Cell, append_record, open_loop, run_cell, write_json
from ale_velocity.errors import NotAvailableError, VelocityError
from ale_velocity.loops import DOUBLE_BUFFER
from ale_velocity.measure import Protocol

TINY = Protocol("tiny", reps=2, iterations=8, warmup=8, counts=(4,))


@pytest.mark.parametrize("loop", ["step", "send_recv"])
def test_a_dqn_cell_on_the_real_stack(loop):
    """Rows, updates, threads, versions and the replay ratio of a small training run."""
    done = run_cell(Cell("dqn", loop, 4, TINY, device="cpu", buffer_cap=64))
    assert [window.rows for window in done.measurement.windows] == [32, 32]
    assert all(math.isfinite(sample) and sample > 0 for sample in done.measurement.samples)
    facts = done.facts
    assert facts["num_updates"] == 4 + (done.measurement.warmup_iterations // 8 - 1) * 2
    assert facts["updates_per_env_step"] == 1 / 16
    assert (facts["device"], facts["num_threads"]) == ("cpu", envs.emulator_threads(4))
    assert facts["torch_threads"] >= 1
    assert {"ale-py", "torch", "numpy", "gymnasium"} == facts["versions"].keys()
    json.dumps(done.to_json(), allow_nan=False)


@pytest.mark.parametrize("backend", ["ale", "fixed"])
def test_the_game_sizes_the_network(backend):
    """Ms. Pac-Man has nine actions, Pong six, with the emulator and for the learner's own limit."""
    for game, number in (("ms_pacman", 9), ("pong", 6)):
        with open_loop(Cell("dqn", "step", 2, TINY, game=game, device="cpu", backend=backend)) as (loop, agent, _):
            observation = next(agent.network.parameters()).new_zeros(1, *envs.OBSERVATION_SHAPE)
            assert agent.network(observation).shape == (1, number)
            loop.close()


def test_a_cell_survives_json():
    """What a process is told is what was asked."""
    cell = Cell("dqn", "step", 4, TINY, torch_threads=1)
    assert Cell.from_json(json.loads(json.dumps(dataclasses.asdict(cell)))) == cell


def test_threads_are_set_and_recorded():
    """A result says how many threads the emulator had, and which loop's code ran."""
    done = run_cell(Cell("emulator", "double_buffer", 4, TINY, num_threads=1))
    assert (done.facts["num_threads"], done.facts["loop"]) == (1, DOUBLE_BUFFER.__name__)
    assert [window.rows for window in done.measurement.windows] == [32, 32]


@pytest.mark.parametrize(
    ("error", "code"), [(VelocityError("received 3 rows"), 1), (NotAvailableError("no AtariVectorEnv"), 3)]
)
def test_a_refusal_is_written_with_its_reason(monkeypatch, tmp_path, error, code):
    """The exit code tells a failed cell from one that is n/a."""

    def refuse(*_args, **_kwargs):
        raise error

    monkeypatch.setattr(cells, "run_cell", refuse)
    write_json(tmp_path / "spec.json", {"cell": dataclasses.asdict(Cell("dqn", "step", 4, TINY)), "pins": []})
    monkeypatch.setattr(sys, "argv", ["cell", str(tmp_path / "spec.json"), str(tmp_path / "result.json")])
    assert cells.main() == code
    assert json.loads((tmp_path / "result.json").read_text()) == {"reason": str(error)}


def test_an_unknown_game_fails_in_the_process_too(tmp_path):
    """The real process answers with the reason and leaves no traceback."""
    cell = Cell("emulator", "step", 4, TINY, game="pongg")
    write_json(tmp_path / "spec.json", {"cell": dataclasses.asdict(cell), "pins": []})
    command = [sys.executable, "-m", "ale_velocity.cell", tmp_path / "spec.json", tmp_path / "result.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "did you mean pong" in json.loads((tmp_path / "result.json").read_text())["reason"]


@pytest.mark.parametrize(("backend", "has_one"), [("ale", True), ("fixed", False)])
def test_a_result_has_the_fingerprint_of_its_work(backend, has_one):
    """Of the emulator, whatever the env count; fixed pictures have none."""
    result = process.measure_in_process(Cell("emulator", "step", 4, TINY, backend=backend), progress=print)
    assert result.get("behaviour") == (fingerprint("ale", "pong") if has_one else None)


def test_the_fingerprint_comes_after_all_windows(monkeypatch, tmp_path):
    """Those of the breakdown included: what it leaves in the process is in none of them."""
    calls = []
    monkeypatch.setattr(cells.behaviour, "fingerprint", lambda *_: calls.append("fingerprint"))
    monkeypatch.setattr(cells, "run_cell", lambda *_, **__: calls.append("windows") or FakeResult())
    monkeypatch.setattr(breakdown, "run_breakdown", lambda _: calls.append("breakdown") or {})
    spec = {"cell": dataclasses.asdict(Cell("emulator", "step", 4, TINY, breakdown=True)), "pins": []}
    write_json(tmp_path / "spec.json", spec)
    monkeypatch.setattr(sys, "argv", ["cell", str(tmp_path / "spec.json"), str(tmp_path / "result.json")])
    assert cells.main() == 0
    assert calls == ["windows", "breakdown", "fingerprint"]


class FakeResult:
    """A result of no windows."""

    def to_json(self):
        """Return nothing."""
        return {}


def test_write_json_replaces_or_leaves(tmp_path):
    """A failure half-way leaves the old file and no rest."""
    path = tmp_path / "kept.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.json"]


def test_records_append(tmp_path):
    """One line a cell, each with its time."""
    path = tmp_path / "machine" / "cells.jsonl"
    append_record(path, {"commit": "a"})
    append_record(path, {"commit": "b"})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["commit"] for line in lines] == ["a", "b"]
    assert all(line["at"].endswith("+00:00") for line in lines)


def test_an_env_that_never_returns_is_named():
    """A wait in native code ends with its process, and the bench says where it was, never a number."""
    code = (
        "import time; from ale_velocity import cell; cell.NO_PROGRESS_S = 0.3\n"
        "with cell.stopped_without(print) as progress:\n"
        "    progress('window 1')\n"
        "    def recv(): time.sleep(60)\n"
        "    recv()"
    )
    reason = _reason(code)
    assert re.match(r"an env never returned: no progress for 0:00:00.3\d*, in <string>, line 4 in recv", reason)


def test_a_crash_in_native_code_is_a_failed_cell():
    """Half batches of ale-py 0.11.2 end so now and then: the signal is named, and there is no number."""
    crash = "signal.raise_signal(signal.SIGSEGV)"  # to this thread, as a fault is; os.kill may end up in any
    assert _reason(f"import signal; {crash}") == "the process died of SIGSEGV: "
    code = (
        f"import signal; from ale_velocity import cell\ndef recv(): {crash}\nwith cell.stopped_without(print): recv()"
    )
    assert re.match(r"the process died of SIGSEGV in <string>, line 2 in recv$", _reason(code))


def _reason(code):
    """Return why a process of this code, which stands for a cell, gave no result."""
    command = [sys.executable, "-c", code]
    result = process.measure_in_process(Cell("emulator", "step", 4, TINY), progress=print, command=command)
    assert result["failed"]
    assert "windows" not in result
    return result["reason"]
