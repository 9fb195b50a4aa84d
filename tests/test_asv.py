"""The whole suite through asv itself: a real environment, real releases, real commands (minutes)."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time

import pytest
from asv import util

from conftest import ROOT

pytestmark = pytest.mark.asv

RELEASES = ("ale-py-0.12.1", "ale-py-0.11.2", "ale-py-0.10.2")  # the last one has no vector env
ONE_CELL = r"EmulatorOnly.track_env_steps_per_second\('step', 1\)"
ONE_ENV = r"(DqnTraining|EmulatorOnly).track_env_steps_per_second\('(step|send_recv)', 1\)"


class Asv:
    """asv on this checkout's quick configuration, with results and pages in a folder of the test's own.

    The environment is the checkout's, since making one takes minutes and 1.3 GB.
    """

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        conf = util.load_json(str(root / "asv-quick.conf.json"), js_comments=True)
        conf |= {key: str(root / conf[key]) for key in ("repo", "benchmark_dir", "env_dir")}
        conf["install_command"] = [command.replace("{conf_dir}", str(root)) for command in conf["install_command"]]
        conf |= {"results_dir": "results", "html_dir": "html"}
        (folder / "asv.conf.json").write_text(json.dumps(conf))
        (folder / "home").mkdir()

    def __call__(self, *args, **environ):
        """Run a command to its end and return it, with stdout and stderr as one text."""
        with self.start(*args, **environ) as process:
            output, _ = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, output)

    def start(self, *args, **environ):
        """Start a command from another folder, without a terminal, in an empty HOME."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("ALE_VELOCITY_")}
        env |= {"HOME": str(self.folder / "home"), "ALE_VELOCITY_MACHINE": "here", "ALE_VELOCITY_DEVICE": "cpu"}
        return subprocess.Popen(
            [sys.executable, "-m", "asv", *args, "--config", str(self.folder / "asv.conf.json")],
            cwd=self.folder / "home",
            env=env | environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def environment_python(self):
        """Return the python of the one environment that the runs share, and the file that says what it holds."""
        (status,) = (self.root / ".asv" / "env").glob("*/asv-install-status.json")
        return status.parent / "bin" / "python", status

    def results(self):
        """Return each release's results by benchmark, as lists over (loop, num_envs), and the samples."""
        names = {commit: name for name, commit in self._commits().items()}
        found = {}
        for path in (self.folder / "results" / "here").glob("*pong-*.json"):
            data = json.loads(path.read_text())
            columns = data["result_columns"]
            found[names[data["commit_hash"]]] = {
                name: dict(zip(columns, row, strict=False)) for name, row in data["results"].items()
            }
        return found

    def _commits(self):
        from ale_velocity.timeline import writer

        return writer.build(self.root / "releases.toml")


@pytest.fixture(scope="module")
def asv(tmp_path_factory):
    """Return asv with two releases measured, and one that has no vector env."""
    run = Asv(ROOT, tmp_path_factory.mktemp("history"))
    done = run("run", f"--no-walk {' '.join(RELEASES)}", "--bench", ONE_ENV)
    assert done.returncode == 0, done.stdout
    run.first_output = done.stdout
    return run


def test_results_hold_samples(asv):
    """Two windows of the quick protocol, stored without being asked for, and the value within them."""
    results = asv.results()
    assert sorted(results) == sorted(RELEASES)
    for release in RELEASES[:2]:
        for name in ("dqn.DqnTraining", "emulator.EmulatorOnly"):
            row = results[release][f"{name}.track_env_steps_per_second"]
            for index in (0, 9):  # (step, 1) and (send_recv, 1)
                samples = row["samples"][index]
                assert len(samples) == 2
                assert min(samples) <= row["result"][index] <= max(samples)
                assert all(math.isfinite(sample) and sample > 0 for sample in samples)


def test_results_carry_their_identity(asv):
    """Protocol, device, game and threads are in every results file; the name of the machine is the given one."""
    (path, *_) = (asv.folder / "results" / "here").glob("*pong-*.json")
    data = json.loads(path.read_text())
    assert data["env_vars"] == {
        "ALE_VELOCITY_DEVICE": "cpu",
        "ALE_VELOCITY_GAME": "pong",
        "ALE_VELOCITY_PROTOCOL": "quick",
        "ALE_VELOCITY_TORCH_THREADS": "default",
    }
    assert data["params"]["machine"] == "here"


def test_records_say_what_ran(asv):
    """The line of each measured cell names the installed versions and threads; that of another says why not."""
    lines = [json.loads(line) for line in (asv.folder / "results" / "here" / "cells.jsonl").read_text().splitlines()]
    skipped = [line for line in lines if "samples" not in line]
    assert {"ale-py 0.10.2 has no AtariVectorEnv"} == {line["reason"].partition(" (")[0] for line in skipped}
    lines = [line for line in lines if "samples" in line]
    assert len(lines) == 2 * 2 * 2
    versions = {line["commit"]: line["facts"]["versions"]["ale-py"] for line in lines}
    commits = asv._commits()
    assert versions == {commits["ale-py-0.12.1"]: "0.12.1", commits["ale-py-0.11.2"]: "0.11.2"}
    assert {line["facts"]["num_threads"] for line in lines} == {1}


def test_a_release_without_the_vector_env_is_not_available(asv):
    """n/a with the reason, not failed."""
    results = asv.results()["ale-py-0.10.2"]
    for row in results.values():
        assert row["result"] is not None
        assert all(value is None or math.isnan(value) for value in row["result"])
        assert math.isnan(row["result"][0])
    assert "ale-py 0.10.2 has no AtariVectorEnv (it came with 0.11.0)" in asv.first_output


def test_compare(asv):
    """The table of two releases has a row for each measured cell."""
    done = asv("compare", "ale-py-0.11.2", "ale-py-0.12.1")
    assert done.returncode == 0, done.stdout
    for name in ("dqn.DqnTraining", "emulator.EmulatorOnly"):
        for loop in ("step", "send_recv"):
            assert f"{name}.track_env_steps_per_second('{loop}', 1)" in done.stdout


def test_publish(asv):
    """The site has what was measured: both benchmarks, and the releases with their tags."""
    done = asv("publish")
    assert done.returncode == 0, done.stdout
    index = json.loads((asv.folder / "html" / "index.json").read_text())
    measured = {f"{name}.track_env_steps_per_second" for name in ("dqn.DqnTraining", "emulator.EmulatorOnly")}
    assert measured <= index["benchmarks"].keys()
    assert set(RELEASES) <= set(index["tags"])
    graphs = list((asv.folder / "html" / "graphs").rglob("dqn.DqnTraining.track_env_steps_per_second.json"))
    assert graphs
    assert (asv.folder / "html" / "index.html").is_file()


def test_what_is_measured_is_not_measured_again(asv):
    """A repeated run with --skip-existing-successful has nothing to do and says so with exit code 0."""
    before = asv.results()
    options = ["--bench", ONE_CELL, "--skip-existing-successful"]
    done = asv("run", "--no-walk ale-py-0.12.1 ale-py-0.11.2", *options)
    assert done.returncode == 0, done.stdout
    assert repr(asv.results()) == repr(before)  # by text: NaN is not equal to itself


def test_an_unknown_game_fails_with_the_way_out(asv):
    """The reason is printed without being asked for; the command's exit code says that a cell failed."""
    done = asv("run", "ale-py-0.12.1^!", "--bench", ONE_CELL, ALE_VELOCITY_GAME="pongg")
    assert done.returncode == 2
    assert "ale-py has no ROM 'pongg'; did you mean pong" in done.stdout


def test_ctrl_c_loses_only_the_benchmark_in_progress(asv):
    """A benchmark that was finished when the user stopped the run is in the results."""
    both = r"(EmulatorOnly|PpoTraining).track_env_steps_per_second\('step', 1\)"  # measured in this order
    with asv.start("run", "ale-py-0.12.1^!", "--bench", both, ALE_VELOCITY_GAME="breakout") as process:
        while not (stored := list((asv.folder / "results" / "here").glob("*breakout*.json"))):
            assert process.poll() is None
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode != 0
    (path,) = stored
    assert list(json.loads(path.read_text())["results"]) == ["emulator.EmulatorOnly.track_env_steps_per_second"]


def test_a_mismatch_of_pins_fails_the_cell(asv):
    """What asv believes to be installed is not taken for granted: both versions are named, no number is stored."""
    options = ["--bench", ONE_CELL]
    assert asv("run", "ale-py-0.11.2^!", *options).returncode == 0
    python, status = asv.environment_python()
    try:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "ale-py==0.11.1"], check=True)
        done = asv("run", "ale-py-0.11.2^!", *options)
    finally:
        status.unlink()  # asv installs anew when it is asked next
    assert done.returncode == 2
    assert "the commit pins ale-py==0.11.2, installed is ale-py 0.11.1" in done.stdout
    row = asv.results()["ale-py-0.11.2"]["emulator.EmulatorOnly.track_env_steps_per_second"]
    assert row["result"] is None or row["result"][0] is None
