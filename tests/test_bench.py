"""The reference experiment's command line."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ale_velocity import bench, envs
from ale_velocity.cli import main
from ale_velocity.process import measure_in_process


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--counts", "0"], "argument --counts: '0' is not a whole number of at least 1"),
        (["--bench-steps", "-5"], "argument --bench-steps: '-5' is not"),
        (["--reps", "two"], "argument --reps: 'two' is not"),
        (["--loops", "stepp"], "argument --loops: invalid choice: 'stepp'"),
        (["--device", "gpu"], "argument --device: invalid choice: 'gpu'"),
        (["--batch-size", "64", "--buffer-cap", "32"], "--batch-size 64 does not fit --buffer-cap 32"),
        (["--counts", "1", "64", "--buffer-cap", "32"], "--counts 64 does not fit --buffer-cap 32"),
        (["--game", "pongg"], "ale-py has no ROM 'pongg'; did you mean pong"),
        (["--json", "/nowhere/at/all.json"], "there is no folder /nowhere/at"),
    ],
)
def test_bad_options_end_before_any_env_opens(monkeypatch, capsys, options, message):
    """One message, exit code 2, and no process started."""
    monkeypatch.setattr(envs, "open_vector_env", lambda *_: pytest.fail("an env was opened"))
    monkeypatch.setattr(bench, "measure_in_process", lambda *_, **__: pytest.fail("a cell was started"))
    try:
        code = main(["bench", *options])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert message in capsys.readouterr().err


def test_a_bad_variable_is_refused_too(monkeypatch, capsys):
    """The options' defaults come from the environment, which is checked in the same way."""
    monkeypatch.setenv("ALE_VELOCITY_DEVICE", "tpu")
    assert main(["bench", "--quick"]) == 2
    assert "ALE_VELOCITY_DEVICE='tpu' is not known: use auto, cpu, cuda" in capsys.readouterr().err


def test_output_rows_and_chart_constants(monkeypatch, capsys, tmp_path):
    """Each count prints both loops, their ratio and the replay ratio; the constants follow as whole numbers."""
    seconds = {("step", 1): (2.0, 2.0), ("send_recv", 1): (1.0, 1.0), ("step", 8): (1.0, 2.0), ("send_recv", 8): None}

    def measured(cell, label):
        timed = seconds[cell.loop, cell.num_envs]
        head = {"cell": {"loop": cell.loop, "num_envs": cell.num_envs}}
        if timed is None:
            return {**head, "reason": "the env returned 5 rows of 8", "failed": True}
        windows = [{"rows": 200 * cell.num_envs, "elapsed_s": elapsed_s} for elapsed_s in timed]
        return {**head, "windows": windows, "facts": {"updates_per_env_step": 0.25 / cell.num_envs}}

    monkeypatch.setattr(bench, "measure_in_process", measured)
    kept = tmp_path / "windows.json"
    assert main(["bench", "--quick", "--json", str(kept)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "n=1     step 100 ± 0  send_recv 200 ± 0 (2.00x step)  0.25 updates/env-step"
    assert lines[1] == "n=8     step 1,200 ± 5,082  send_recv n/a  0.0312 updates/env-step"
    assert lines[5:] == [
        "const stepRaw = [",
        "  { n: 1, thr: 100, thr_lo: 100, thr_hi: 100 },",
        "  { n: 8, thr: 1200, thr_lo: -3882, thr_hi: 6282 },",
        "];",
        "const recvRaw = [",
        "  { n: 1, thr: 200, thr_lo: 200, thr_hi: 200 },",
        "];",
    ]
    cells = json.loads(kept.read_text())["cells"]
    assert [len(cell.get("windows", [])) for cell in cells] == [2, 2, 2, 0]


def test_options_reach_the_cell(monkeypatch):
    """--quick gives the protocol, an explicit option beats it, and each cell gets the schedule."""
    cells = []

    def measured(cell, label):
        cells.append(cell)
        return {"cell": {"loop": cell.loop, "num_envs": cell.num_envs}, "reason": "not run", "failed": False}

    monkeypatch.setattr(bench, "measure_in_process", measured)
    options = ["--quick", "--counts", "4", "--reps", "3", "--train-freq", "1", "--batch-size", "16"]
    assert main(["bench", *options, "--buffer-cap", "500", "--loops", "send_recv"]) == 0
    (cell,) = cells
    assert (cell.loop, cell.num_envs, cell.train_freq, cell.batch_size, cell.buffer_cap) == ("send_recv", 4, 1, 16, 500)
    protocol = cell.protocol
    assert (protocol.reps, protocol.window_iterations(4), protocol.warmup, protocol.counts) == (3, 200, 32, (4,))


def test_threads_and_learner_reach_the_cell(monkeypatch):
    """Thread counts are options; torch's falls back to the environment's, then to torch's own."""
    cells = []

    def measured(cell, label):
        cells.append(cell)
        return {"cell": {"loop": cell.loop, "num_envs": cell.num_envs}, "reason": "not run", "failed": False}

    monkeypatch.setattr(bench, "measure_with_progress", measured)
    options = ["--quick", "--counts", "4", "--loops", "ping_pong"]
    assert main(["bench", *options, "--num-threads", "3", "--torch-threads", "2", "--learner", "graphed"]) == 0
    monkeypatch.setenv("ALE_VELOCITY_TORCH_THREADS", "5")
    assert main(["bench", *options, "--agent", "ppo", "--backend", "envpool"]) == 0
    assert [(cell.num_threads, cell.torch_threads) for cell in cells] == [(3, 2), (None, 5)]
    assert [(cell.agent, cell.learner, cell.backend) for cell in cells] == [
        ("dqn", "graphed", "ale"),
        ("ppo", "eager", "envpool"),
    ]


def test_a_real_run_keeps_its_windows(capsys, tmp_path):
    """Two loops on a real game without a paddle: progress on stderr, rows on stdout, windows and facts in the file."""
    kept = tmp_path / "windows.json"
    options = [
        "--game",
        "ms_pacman",
        "--agent",
        "emulator",
        "--counts",
        "2",
        "--reps",
        "2",
        "--bench-steps",
        "50",
        "--warmup",
        "8",
    ]
    assert main(["bench", *options, "--json", str(kept)]) == 0
    captured = capsys.readouterr()
    assert "[2/2] emulator send_recv n=2: window 2/2: " in captured.err
    assert captured.out.startswith("n=2     step ")
    assert "env-steps/s of ms_pacman, 5 frames each" in captured.out
    cells = json.loads(kept.read_text())["cells"]
    assert [window["rows"] for cell in cells for window in cell["windows"]] == [100, 100, 100, 100]
    assert {cell["cell"]["game"] for cell in cells} == {"ms_pacman"}
    facts = cells[0]["facts"]
    assert (facts["num_threads"], facts["frameskip"], facts["device"]) == (envs.emulator_threads(2), 5, "none")
    assert "ale-py" in facts["versions"]


def test_a_crash_of_a_cell_is_named(monkeypatch, capsys):
    """A process that dies without a word is a failed cell with its exit code, and the run's exit code is 2."""
    monkeypatch.setattr(bench, "measure_in_process", functools.partial(measure_in_process, command=["false"]))
    options = ["--agent", "emulator", "--counts", "1", "--loops", "step"]
    assert main(["bench", *options]) == 2
    assert "[1/1] emulator step n=1: failed: the process ended with code 1" in capsys.readouterr().err


@pytest.mark.parametrize(("stop", "signum"), [(os.killpg, signal.SIGINT), (os.kill, signal.SIGTERM)])
def test_a_stop_keeps_what_was_measured(tmp_path, stop, signum):
    """Ctrl-C, or a scheduler's signal to the command alone: 130, the finished cells in the file, no process left."""
    kept = tmp_path / "windows.json"
    options = ["--agent", "emulator", "--counts", "1", "--reps", "2", "--bench-steps", "100", "--warmup", "8"]
    command = [sys.executable, "-m", "ale_velocity.cli", "bench", *options, "--counts", "1", "2", "4", "8", "16"]
    with subprocess.Popen([*command, "--json", kept], stderr=subprocess.PIPE, start_new_session=True) as process:
        while not kept.exists():
            assert process.poll() is None
            time.sleep(0.02)
        stop(process.pid, signum)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"interrupted" in stderr
    assert 1 <= len(json.loads(kept.read_text())["cells"]) < 10
    deadline = time.monotonic() + 10  # an orphan that has ended is there until init collects it
    while is_there(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_there(group):
    """Whether the process group has a process."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
