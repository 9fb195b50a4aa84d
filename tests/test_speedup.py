"""`ale-velocity speedup` through the real command line, on results written by asv's code."""

from __future__ import annotations

import pytest

from ale_velocity import cli
from results_tree import DQN, EMULATOR, ResultsTree, curve

GAINS = {"ale-py-0.11.1": 1.18, "ale-py-0.11.2": 1.20, "ale-py-0.12.1": 1.22}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Three releases with a known gain; a second machine with one; and a release that measured one loop only."""
    tree = ResultsTree(tmp_path_factory.mktemp("speedup"))
    for machine in ("vm", "node"):
        tree.add_machine(machine)
    for release, gain in GAINS.items():
        tree.add("vm", release, DQN, curve(1.0, counts=(1, 8), gain=gain, spread=0.002))
    tree.add("node", "ale-py-0.12.1", DQN, curve(2.0, counts=(8,), gain=1.5, spread=0.002))
    blocking = {key: samples for key, samples in curve(1.0, counts=(8,)).items() if key[0] == "step"}
    tree.add("vm", "ale-py-0.12.0", DQN, blocking)
    tree.add("vm", "ale-py-0.12.0", EMULATOR, blocking)
    return tree


@pytest.fixture
def speedup(tree, capsys):
    """Run the command on the tree; return exit code, and the printed lines or the error."""

    def run(*arguments):
        code = cli.main(["speedup", "--config", str(tree.folder / "asv.conf.json"), *arguments])
        printed = capsys.readouterr()
        return code, (printed.out or printed.err).splitlines()

    return run


def test_releases_are_pairs(speedup):
    """A release with both loops counts once a count; the interval holds the mean gain, and each release's is shown."""
    code, (heading, columns, *lines) = speedup("--machine", "vm")
    assert code == 0
    assert heading == "DQN training, env-steps/s, vm, cpu, pong, standard, Python 3.11: speed-up over step"
    assert columns.split()[:4] == ["loop", "envs", "pairs", "speed-up"]
    assert [line.split()[:3] for line in lines] == [
        ["send_recv", "1", "3"],
        ["send_recv", "8", "3"],
        ["send_recv", "all", "6"],
    ]
    for line in lines:
        _, _, _, ratio, low, _, high, verdict, *_ = line.split()
        assert float(low) < 1.2 < float(high)
        assert (float(ratio), verdict) == (pytest.approx(1.2, abs=0.01), "faster")
    assert lines[0].endswith("0.11.1 1.18, 0.11.2 1.20, 0.12.1 1.22")


def test_the_other_way_round_is_the_inverse(speedup):
    """Whatever is compared with, by name."""
    _, (*_, last) = speedup("--machine", "vm", "--over", "send_recv", "--counts", "8")
    loop, _, _, ratio, *_ = last.split()
    assert (loop, float(ratio)) == ("step", pytest.approx(1 / 1.2, abs=0.01))
    assert "slower" in last


def test_the_loop_that_takes_less_time_is_faster(tmp_path, capsys):
    """A speed-up is of speed, also where times were measured."""
    tree = ResultsTree(tmp_path)
    tree.add_machine("vm")
    tree.add_benchmark("suite.Steps.track_step_time", unit="microseconds/step")
    for release in GAINS:
        tree.add("vm", release, "suite.Steps.track_step_time", curve(1.0, counts=(8,), gain=0.5, spread=0.002))
    arguments = ["speedup", "--config", str(tmp_path / "asv.conf.json"), "--unit", "microseconds/step"]
    assert cli.main(arguments) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert last.split()[:4] == ["send_recv", "8", "3", "2.00"]
    assert "faster" in last


def test_baselines_are_compared_like_loops(tmp_path, capsys):
    """They go by another parameter's name."""
    tree = ResultsTree(tmp_path)
    tree.add_machine("vm")
    gymnasium = "baselines.Baselines.track_env_steps_per_second"
    tree.add_benchmark(gymnasium, loops=("gymnasium_sync", "gymnasium_async"), param="baseline")
    for release, rate in (("ale-py-0.9.1", 100.0), ("ale-py-0.12.1", 110.0)):
        tree.add("vm", release, gymnasium, {("gymnasium_sync", 8): [rate] * 5, ("gymnasium_async", 8): [rate * 2] * 5})
    arguments = ["speedup", "--config", str(tmp_path / "asv.conf.json"), "--over"]

    assert cli.main([*arguments, "gymnasium_sync"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert last.split()[:4] == ["gymnasium_async", "8", "2", "2.00"]
    assert cli.main([*arguments, "ale-py-0.9.1"]) == 0
    *_, one, other, _ = capsys.readouterr().out.splitlines()
    assert one.split()[:4] == ["ale-py-0.12.1", "gymnasium_async", "1", "1.10"]
    assert other.split()[:4] == ["ale-py-0.12.1", "gymnasium_sync", "1", "1.10"]


@pytest.fixture
def history(tmp_path):
    """Three releases of a known speed, of which 0.11.0 does different work and 0.12.0 lacks a count."""
    tree = ResultsTree(tmp_path)
    tree.add_machine("vm")
    tree.add("vm", "ale-py-0.11.0", DQN, curve(2.0, counts=(1, 8), spread=0.002))
    tree.add("vm", "ale-py-0.11.1", DQN, curve(1.0, counts=(1, 8), spread=0.002))
    tree.add("vm", "ale-py-0.12.0", DQN, curve(1.1, counts=(8,), spread=0.002))
    tree.add("vm", "ale-py-0.12.1", DQN, curve(1.2, counts=(1, 8), spread=0.002))
    return ["speedup", "--config", str(tmp_path / "asv.conf.json")]


def test_releases_are_compared_by_what_both_measured(history, capsys):
    """A loop and count is a pair; different work is left out; nothing is called faster."""
    assert cli.main([*history, "--over", "ale-py-0.11.1"]) == 0
    heading, columns, *lines = capsys.readouterr().out.splitlines()
    assert heading.endswith(": speed-up over ale-py-0.11.1")
    assert columns.split() == ["release", "loop", "pairs", "speed-up", "95%", "interval", "by", "envs"]
    assert [line.split()[:3] for line in lines] == [
        ["ale-py-0.12.0", "send_recv", "1"],
        ["ale-py-0.12.0", "step", "1"],
        ["ale-py-0.12.0", "all", "2"],
        ["ale-py-0.12.1", "send_recv", "2"],
        ["ale-py-0.12.1", "step", "2"],
        ["ale-py-0.12.1", "all", "4"],
    ]
    assert [float(line.split()[3]) for line in lines] == pytest.approx([1.1] * 3 + [1.2] * 3, abs=0.01)
    assert lines[4].endswith("1 1.20, 8 1.20")
    assert not any(word in line for line in lines for word in ("faster", "slower", "inconclusive"))


def test_different_work_is_no_speed_up(history, capsys):
    """Not of any other release."""
    assert cli.main([*history, "--over", "ale-py-0.11.0"]) == 2
    assert "measured both with ale-py-0.11.0 and with another, for the same work" in capsys.readouterr().err


def test_one_pair_has_no_interval(speedup):
    """Nothing says how much processes differ; machines have tables of their own."""
    _, lines = speedup("--counts", "8")
    assert [line.split(", ")[2].split()[0] for line in lines if "speed-up over" in line] == ["node", "vm"]
    assert lines[2].split() == ["send_recv", "8", "1", "1.50", "faster", "0.12.1", "1.50"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--over", "stepp"], "no loop, baseline or release 'stepp'; did you mean step?"),
        (["--loops", "ping_pong"], "no loop 'ping_pong'; did you mean"),
        (["--counts", "7"], "no env count '7'; did you mean 1 or 8?"),
        (["--machine", "laptop"], "no results for --machine laptop: there are results for node, vm"),
        (
            ["--benchmark", "EmulatorOnly"],
            "nothing that is chosen was measured both with step and with another",
        ),
    ],
)
def test_what_is_not_there_is_named(speedup, arguments, message):
    """With what there is."""
    code, (line,) = speedup(*arguments)
    assert (code, message in line) == (2, True), line
