"""`ale-velocity sweep`: its order and estimates, and the command with a stand-in for asv that stores real results."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from asv.machine import Machine

from ale_velocity import cli, envs, options
from ale_velocity.asv_plugin.history import RUNS, History
from ale_velocity.sweep import asv_process, command, estimate
from ale_velocity.sweep.estimate import Estimates, Observed
from ale_velocity.sweep.plan import Kind, levels, ordered
from conftest import ROOT

FAKE = Path(__file__).with_name("fake_asv.py")
OLD, MIDDLE, NEW = "ale-py-0.11.1", "ale-py-0.11.2", "ale-py-0.12.0"
WALL = "emulator.EmulatorOnly.track_env_steps_per_second"
CPU = "emulator.EmulatorOnly.track_env_steps_per_cpu_second"


def test_the_ends_come_first_and_then_the_middles():
    """Each level holds the releases that are farthest from those before it, newest first."""
    assert list(levels("abcdefghi")) == [["i", "a"], ["e"], ["g", "c"], ["h", "f", "d", "b"]]
    assert list(levels("abcd")) == [["d", "a"], ["b"], ["c"]]
    assert (list(levels("a")), list(levels(""))) == ([["a"]], [])


def test_loops_of_a_count_stay_together_and_releases_go_back_and_forth():
    """A count costs one change of release in a level of two, none in a level of one."""
    kinds = [Kind("Dqn", loop, count, ()) for loop in ("step", "send_recv") for count in (1, 8)]
    plan = [(run.release, run.kind.num_envs, run.kind.loop) for run in ordered("abc", (8, 1), kinds)]
    assert plan == [
        (release, count, loop)
        for release, count in (("c", 8), ("a", 8), ("a", 1), ("c", 1), ("b", 8), ("b", 1))
        for loop in ("step", "send_recv")
    ]


def kind(benchmark="Dqn", loop="step", num_envs=8, cells=(None,)):
    return Kind(benchmark, loop, num_envs, tuple(cells))


@pytest.mark.parametrize(
    ("runs", "seconds"),
    [
        ([], estimate.CELL_S["quick"]),
        ([(kind("Ppo"), 5.0)], estimate.CELL_S["quick"]),
        ([(kind(), 5.0), (kind(), 7.0), (kind(), 100.0), (kind(loop="torch_ops"), 1.0)], 7.0),
        ([(kind(num_envs=4), 5.0), (kind(loop="torch_ops"), 7.0)], 7.0),
        ([(kind(num_envs=1), 5.0), (kind(num_envs=32, loop="torch_ops"), 7.0)], 7.0),
    ],
    ids=["default", "another benchmark", "the same", "another loop", "another count"],
)
def test_a_run_is_estimated_by_the_runs_most_like_it(runs, seconds):
    assert Estimates("quick", Observed(runs, [], [])).run_s(kind()) == seconds


def test_what_is_not_available_is_quick_and_installations_are_learnt():
    """A loop that was n/a is so for other counts too; an installation is what it added to its run."""
    observed = Observed([(kind(), 5.0)], [(kind(), 25.0)], [kind(loop="torch_ops", num_envs=1)])
    estimates = Estimates("quick", observed)
    assert estimates.run_s(kind(loop="torch_ops")) == estimate.NOT_AVAILABLE_S
    assert estimates.run_s(kind(loop="send_recv")) == 5.0
    assert estimates.install_s == 20.0


@pytest.mark.parametrize(("text", "seconds"), [("9m", 540), ("90s", 90), ("2h", 7200), ("1h30m", 5400)])
def test_durations(text, seconds):
    """They can be read back from how they are written."""
    assert options.duration(text) == seconds
    assert options.duration(options.in_words(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "9", "9 m", "0s", "m", "-9m", "30m1h"])
def test_no_durations(text):
    with pytest.raises(argparse.ArgumentTypeError, match="write 9m, 90s or 1h30m"):
        options.duration(text)


def test_versions_with_a_vector_env():
    assert [envs.has_vector_env(version) for version in ("0.9.1", "0.10.2", "0.11.0", "0.12.1")] == [0, 0, 1, 1]


class Project:
    """A folder with the quick configuration and the repository's own suite."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.log, self._monkeypatch = folder, folder / "log", monkeypatch
        for name in ("asv-quick.conf.json", "releases.toml"):
            shutil.copyfile(ROOT / name, folder / name)
        shutil.copytree(ROOT / "benchmarks", folder / "benchmarks", ignore=shutil.ignore_patterns("__pycache__"))
        self.options = ["sweep", "--config", str(folder / "asv-quick.conf.json"), "--series", "ale-py"]
        self.options += ["--releases", OLD, MIDDLE, NEW, "--bench", "EmulatorOnly", "--loops", "step", "torch_ops"]
        self.fake()

    def fake(self, **told):
        """Say how the stand-in for asv behaves."""
        self._monkeypatch.setenv("FAKE_ASV", json.dumps({"log": str(self.log), **told}))

    def sweep(self, *arguments):
        """Run the command in this process, and return its exit code."""
        return cli.main([*self.options, *arguments])

    def start(self, *arguments):
        """Run the command in a process of its own."""
        code = f"from ale_velocity.sweep import asv_process; asv_process.ASV = {asv_process.ASV!r}; "
        code += f"from ale_velocity import cli; raise SystemExit(cli.main({[*self.options, *arguments]!r}))"
        return subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def ran(self):
        """Return the release, method, and arguments of each cell that was run, in order."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(line.split()[0], line.split()[1].split("(")[0], line.split("(")[1].strip(")")) for line in lines]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("ALE_VELOCITY_MACHINE", "here")
    monkeypatch.setenv("ALE_VELOCITY_DEVICE", "cpu")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setattr(Machine, "hardcoded_machine_name", None)
    monkeypatch.setattr(asv_process, "ASV", (sys.executable, str(FAKE)))
    # Rules of thumb that suit the stand-in.
    monkeypatch.setattr(estimate, "CELL_S", {"quick": 1})
    monkeypatch.setattr(estimate, "INSTALL_S", 0)
    monkeypatch.setattr(command, "ENVIRONMENT_S", 0)
    monkeypatch.setattr(command, "STOP_S", 1)
    return Project(tmp_path, monkeypatch)


EVERYTHING = [
    (release, method, f"'{loop}', {count}")
    for release, count in ((NEW, 1), (OLD, 1), (OLD, 8), (NEW, 8), (MIDDLE, 1), (MIDDLE, 8))
    for loop in ("step", "torch_ops")
    for method in (CPU, WALL)
]


def test_all_is_measured_once_in_order(project, capsys):
    """The quick protocol's counts only; what is n/a is done as well, and a second sweep has nothing to do."""
    assert project.sweep() == 0
    assert project.ran() == EVERYTHING
    output = capsys.readouterr().out
    assert f"{NEW}, 1 env, EmulatorOnly step: measured" in output
    assert f"{NEW}, 1 env, EmulatorOnly torch_ops: n/a" in output
    assert f"{NEW} {WALL}('step', 8): measured" in output  # asv's own output
    assert "12 of 12 cells done, 0 failed" in output
    assert project.sweep() == 0
    assert project.ran() == EVERYTHING


def test_a_dry_run_lists_and_runs_nothing(project, capsys):
    assert project.sweep("--dry-run") == 0
    output = capsys.readouterr().out
    assert project.ran() == []
    assert f"1. {NEW}, 1 env, EmulatorOnly step: about 1s" in output
    assert f"12. {MIDDLE}, 8 envs, EmulatorOnly torch_ops: about 1s" in output
    assert "12 left, about 12s: ale-velocity sweep --series ale-py" in output


def test_estimates_know_runs_that_are_not_chosen(project, capsys):
    """A count that never ran is estimated by the nearest that did, though it is in no plan now."""
    project.fake(seconds=2)
    assert project.sweep("--releases", NEW, "--counts", "1", "--loops", "step", "send_recv") == 0
    project.sweep("--releases", NEW, "--counts", "8", "--loops", "step", "--dry-run")
    (seconds,) = re.findall(r"1\. .*8 envs, EmulatorOnly step: about (\d+)s", capsys.readouterr().out)
    assert int(seconds) >= 2 * 2  # methods of a run


def test_sweeps_within_a_budget_add_up(project, capsys):
    """Each ends in time with 3 until nothing is left, and no cell is run twice."""
    project.fake(seconds=1)
    codes = []
    while not codes or codes[-1] == 3:
        started = time.monotonic()
        codes.append(project.sweep("--loops", "step", "--budget", "14s"))
        assert time.monotonic() - started < 14
    assert codes[-1] == 0
    assert len(codes) > 1
    assert project.ran() == [cell for cell in EVERYTHING if "step" in cell[2]]
    assert "--budget 14s" in capsys.readouterr().out


def test_a_run_that_overruns_is_interrupted(project, capsys):
    """What was measured before is kept; the estimate, a second, was far too low."""
    project.fake(slow=[f"{NEW} {CPU}('torch_ops', 1)"])
    started = time.monotonic()
    assert project.sweep("--budget", "9s") == 3
    assert time.monotonic() - started < 9
    assert project.ran() == EVERYTHING[:2]
    output = capsys.readouterr().out
    assert f"{NEW}, 1 env, EmulatorOnly torch_ops: interrupted after" in output
    assert "1 of 12 cells done" in output
    project.fake()
    assert project.sweep("--releases", NEW) == 0
    assert project.ran() == [cell for cell in EVERYTHING if cell[0] == NEW]


@pytest.mark.parametrize("budget", ["2s", "5s"], ids=["nothing fits", "the first overruns"])
def test_a_budget_without_progress_is_an_error(project, capsys, budget):
    """Or a script that repeats the command would never end."""
    project.fake(slow=[NEW])
    assert project.sweep("--budget", budget) == 2
    assert f"nothing was finished within {budget}: {NEW}, 1 env, EmulatorOnly step needs" in capsys.readouterr().err


def test_a_failed_cell_is_tried_once_a_sweep_and_after_all_others(project, capsys):
    """Its release is put off meanwhile, since what fails is often the release."""
    project.fake(failing=[f"{OLD} {CPU}('step', 1)"])
    chosen = ["--releases", OLD, NEW, "--loops", "step"]
    assert project.sweep(*chosen) == 2
    rest = [(release, method, f"'step', {count}") for release, count in ((OLD, 1), (NEW, 8)) for method in (CPU, WALL)]
    assert project.ran() == [(NEW, CPU, "'step', 1"), (NEW, WALL, "'step', 1"), *rest]
    assert f"failed: {OLD}, 1 env, EmulatorOnly step: it broke\n" in capsys.readouterr().out
    project.log.unlink()
    project.fake()
    assert project.sweep(*chosen) == 0
    # The method that has a value is not measured again.
    assert project.ran() == [(OLD, CPU, "'step', 8"), (OLD, WALL, "'step', 8"), (OLD, CPU, "'step', 1")]


def test_asv_that_refuses_is_no_failed_cell(project, capsys):
    """Its exit code is the same; a cell without a value must not be taken for n/a then."""
    project.sweep("--releases", NEW, "--loops", "step", "--counts", "1")
    project.fake(broken=["8)"], code=2)
    assert project.sweep("--releases", NEW) == 2
    assert f"asv ended with code 2 for {NEW}, 8 envs, EmulatorOnly step" in capsys.readouterr().err
    project.fake()
    assert project.sweep("--releases", NEW) == 0
    assert project.ran() == [cell for cell in EVERYTHING if cell[0] == NEW]


def test_asv_that_fails_stops_the_sweep(project, capsys):
    project.fake(broken=[MIDDLE])
    assert project.sweep("--releases", MIDDLE) == 2
    output, error = capsys.readouterr()
    assert "something is wrong with this asv" in output
    assert f"asv ended with code 1 for {MIDDLE}, 1 env, EmulatorOnly step: its reason is above" in error


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds asv's process in /proc")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("line", [f"sweep: [2, 5 left] {OLD}", "asv takes its time"], ids=["starting", "measuring"])
def test_interrupted(project, line, signum):
    """asv ends with the sweep, also one that has just been started, and what was measured is kept."""
    project.fake(slow=[OLD])
    with project.start("--loops", "step") as process:
        output = ""
        while line not in output:
            output += process.stdout.readline()
        while not (started := children(process.pid)):
            time.sleep(0.001)
        process.send_signal(signum)
        output += process.communicate(timeout=30)[0]
    assert process.returncode == 130
    assert "sweep: interrupted: what was measured is kept" in output
    assert "1 of 6 cells done" in output
    assert not any((Path("/proc") / pid).exists() for pid in started)
    assert project.ran() == EVERYTHING[:2]


def children(parent):
    """Return the process ids of a process's children."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if stat.read_text().rsplit(")", 1)[1].split()[1] == str(parent):
                found.append(stat.parent.name)
    return found


def test_what_never_ran_is_not_taken_for_n_a(project):
    """asv stores NaN for both."""
    project.sweep("--counts", "1", "--releases", NEW)
    history = History(project.folder / "asv-quick.conf.json")
    states = {(cell, place) for (release, cell), place in history.state().items() if release == NEW}
    assert states == {
        (f"{method}-{place}", state) for method in (CPU, WALL) for place, state in ((0, "measured"), (18, "n/a"))
    }
    (project.folder / ".asv" / "quick" / "results" / "here" / RUNS).unlink()
    assert set(history.state().values()) == {"measured"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--series", "ale"], "no series 'ale'; did you mean ale-py"),
        (["--releases", "ale-py-0.12.2"], "no release 'ale-py-0.12.2'; did you mean ale-py-0.12.1"),
        (["--releases", "torch-2.9.1"], "no release 'torch-2.9.1'"),
        (["--bench", "Emulator"], "no benchmark 'Emulator'; did you mean EmulatorOnly"),
        (["--bench", "("], "'(' is no regular expression"),
        (["--loops", "steps"], "no loop 'steps'; did you mean step"),
        (["--counts", "2"], "the quick protocol does not measure 2 envs: 1, 8"),
        (["--config", "nowhere.json"], "nowhere.json is no file"),
        (["--environment", "stuck"], "a sweep fills one environment, here are 0"),
    ],
)
def test_bad_choices(project, capsys, arguments, message):
    assert project.sweep(*arguments) == 2
    assert message in capsys.readouterr().err
    assert project.ran() == []


def test_a_release_may_be_called_by_its_version(project, capsys):
    """As in the series' other commands."""
    assert project.sweep("--dry-run", "--releases", NEW.removeprefix("ale-py-")) == 0
    runs = [line for line in capsys.readouterr().out.splitlines() if " envs, " in line]
    assert runs
    assert all(NEW in line for line in runs)


def test_releases_without_a_vector_env_are_left_out(project, capsys):
    """Unless they are named, for benchmarks that need none."""
    del project.options[project.options.index("--releases") : project.options.index("--bench")]
    assert project.sweep("--dry-run") == 0
    output = capsys.readouterr().out
    assert "left out: ale-py-0.10.2 has no vector env" in output
    assert "1. ale-py-0.12.1, 1 env" in output
    assert "3. ale-py-0.11.0, 1 env" in output
    assert project.sweep("--dry-run", "--releases", "ale-py-0.10.2", "--bench", "Baselines", "--loops", "envpool") == 0
    assert "1. ale-py-0.10.2, 1 env, Baselines envpool" in capsys.readouterr().out
