"""The duel with scripted stacks: order, verdicts, exit codes, stops and resumes; and one through real processes."""

import argparse
import itertools
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ale_velocity import cli, facts, installed, layer, stats
from ale_velocity.behaviour import fingerprint
from ale_velocity.duel import command, contest, report, stacks
from ale_velocity.errors import VelocityError
from ale_velocity.measure import PROTOCOLS

MANIFEST = Path(__file__).parent.parent / "releases.toml"
JITTER = (0.0, 0.004, -0.003, 0.002, -0.004, 0.003, -0.001, 0.001, -0.002, 0.0)


class FakeStack:
    """A stack whose processes have scripted rates; `log` gets a line a process."""

    def __init__(self, name, rate, log, gap=None):
        self.name = name
        self.pins = (f"ale-py=={rate}",)
        self.rate = rate
        self.log = log
        self.gap = gap
        self.count = 0

    def measure(self, cell):
        """Return two windows, the best of which is the rate, with some jitter."""
        self.log.append((self.name, cell.loop))
        if self.gap:
            return {"cell": {}, **self.gap}
        rate = self.rate(self.count) if callable(self.rate) else self.rate * math.exp(JITTER[self.count % len(JITTER)])
        self.count += 1
        return {"samples": [rate, 0.9 * rate], "cpu_samples": [rate / 2, rate / 2], "facts": {"device": "none"}}


class FailsOnce(FakeStack):
    """A stack that fails in one loop."""

    def measure(self, cell):
        """Fail with `step`."""
        self.gap = {"reason": "broke", "failed": True} if cell.loop == "step" else None
        return super().measure(cell)


@pytest.fixture
def here(monkeypatch):
    """A machine with known facts."""
    known = {"name": "here", "cpu": "Fast CPU", "num_cpus": 2, "usable_cpus": 2, "gpus": []}
    monkeypatch.setattr(facts, "gather", lambda: known)
    return known


def options(tmp_path, *words):
    parser = argparse.ArgumentParser()
    command.add_command(parser.add_subparsers())
    return parser.parse_args(["duel", "old", "new", "--loops", "step", "--json", str(tmp_path / "d.json"), *words])


def fight(tmp_path, before, after, *words):
    arguments = options(tmp_path, *words)
    return command.fight(arguments, (before, after), tmp_path / "d.json")


def stacks_of(before=1000.0, after=1000.0, gap=None):
    log = []
    return FakeStack("old", before, log, gap), FakeStack("new", after, log), log


@pytest.mark.usefixtures("here")
def test_settings_come_from_the_environment_unless_given(tmp_path, monkeypatch):
    """The same variables as everywhere, and a wrong value is refused."""
    for name, value in (("GAME", "ms_pacman"), ("DEVICE", "cpu"), ("TORCH_THREADS", "2")):
        monkeypatch.setenv(f"ALE_VELOCITY_{name}", value)
    (cell,) = command._cells(options(tmp_path))
    assert (cell.game, cell.device, cell.torch_threads) == ("ms_pacman", "cpu", 2)
    (cell,) = command._cells(options(tmp_path, "--game", "pong", "--device", "cuda", "--torch-threads", "1"))
    assert (cell.game, cell.device, cell.torch_threads) == ("pong", "cuda", 1)
    monkeypatch.setenv("ALE_VELOCITY_DEVICE", "tpu")
    with pytest.raises(VelocityError, match="ALE_VELOCITY_DEVICE='tpu' is not known"):
        command._cells(options(tmp_path))


def test_order_flips_from_pair_to_pair(tmp_path):
    """Fresh processes alternate, and each stack is first in every second pair, cell by cell."""
    before, after, log = stacks_of()
    fight(tmp_path, before, after, "--pairs", "2", "--loops", "step", "send_recv")

    assert log == [
        ("old", "step"),
        ("new", "step"),
        ("old", "send_recv"),
        ("new", "send_recv"),
        ("new", "step"),
        ("old", "step"),
        ("new", "send_recv"),
        ("old", "send_recv"),
    ]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("after", "code", "says"),
    [
        (1100.0, 0, "ratio 1.100 (95% interval 1.100 to 1.100, 10 pairs): faster"),
        (900.0, 1, "ratio 0.900 (95% interval 0.900 to 0.900, 10 pairs): slower"),
        (1000.0, 0, "same within 0.1%"),
        (lambda count: 1060.0 if count % 2 else 950.0, 3, "inconclusive: needs about "),
    ],
)
def test_verdicts_and_exit_codes(tmp_path, capsys, after, code, says):
    """Each verdict has its words and its exit code."""
    before, after, _ = stacks_of(after=after)

    assert fight(tmp_path, before, after) == code
    assert says in capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_both_measures_are_printed_and_one_decides(tmp_path, capsys):
    """Wall and CPU time both have a row."""
    before, after, _ = stacks_of(after=900.0)

    assert fight(tmp_path, before, after, "--measure", "cpu") == 1
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("emulator")]
    assert rows == [
        "emulator step n=8, env-steps/s: old 1,000, new 900",
        "emulator step n=8, env-steps/CPU-s: old 500, new 450",
    ]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("codes", "combined"),
    [
        ({"step": 1.1, "send_recv": 0.9}, 1),
        ({"step": 1.1, "send_recv": None}, 3),
        ({"step": 0.9, "send_recv": None}, 1),
    ],
)
def test_cells_combine(tmp_path, codes, combined):
    """Any slower cell decides; else any inconclusive one."""

    class ByLoop(FakeStack):
        def measure(self, cell):
            """Return the loop's rate: scripted, or one that jumps."""
            change = codes[cell.loop]
            self.rate = (lambda count: 700.0 if count % 4 < 2 else 1400.0) if change is None else 1000.0 * change
            return super().measure(cell)

    before, _, log = stacks_of()

    assert fight(tmp_path, before, ByLoop("new", 1.0, log), "--loops", "step", "send_recv") == combined


class Opposite(FakeStack):
    """A stack whose two loops are disturbed, by 3% a pair, in opposite ways: neither alone tells of its change."""

    def __init__(self, name, change, log):
        super().__init__(name, self.rate_of, log)
        self.change = change

    def rate_of(self, count):
        """Return rates of step, send_recv, step, send_recv, ... in rounds of two."""
        number, loop = divmod(count, 2)
        return 1000.0 * self.change * math.exp(0.03 * (-1) ** (number + loop))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("change", "code", "word"), [(1.02, 3, "faster"), (0.98, 1, "slower")])
def test_all_cells_are_judged_together(tmp_path, capsys, change, code, word):
    """A change that they share is found where no cell finds it, and a loss is then a loss."""
    before, _, log = stacks_of(before=lambda _count: 1000.0)

    words = ("--pairs", "4", "--loops", "step", "send_recv")
    assert fight(tmp_path, before, Opposite("new", change, log), *words) == code
    out = capsys.readouterr().out
    assert out.count("inconclusive") == 4  # two cells, by both measures
    assert (
        f"emulator, 2 cells together, env-steps/s: old 1,000, new {1000 * change:,.0f}\n"
        f"    ratio {change:.3f} (95% interval {change - 0.001:.3f} to {change + 0.001:.3f}, 4 pairs): {word}\n"
    ) in out


@pytest.mark.usefixtures("here")
def test_a_changing_pace_is_taken_out(tmp_path, capsys):
    """A machine that jumps between two paces hides a gain of 4% that its readings bring back, of cells and of all."""

    class Paced(FakeStack):
        def measure(self, cell):
            """Run at one of two paces, which is read around both windows."""
            pace_s = 0.004 if len(self.log) % 3 else 0.006
            result = super().measure(cell)
            rates = {name: [rate * 0.004 / pace_s for rate in result[name]] for name in ("samples", "cpu_samples")}
            return {**result, **rates, "pace_s": [pace_s] * 3}

    log = []
    before, after = Paced("old", 1000.0, log), Paced("new", 1040.0, log)
    assert fight(tmp_path, before, after, "--pairs", "9", "--loops", "step", "send_recv") == 0
    found = "    ratio 1.040 at equal pace (95% interval 1.040 to 1.040, 9 pairs): faster"
    assert capsys.readouterr().out.count(found) == 6
    alone = [pair["results"] for pair in json.loads((tmp_path / "d.json").read_text())["pairs"] if pair["cell"] == 0]
    sides = [[result["samples"][0] for result in results] for results in zip(*alone, strict=True)]
    assert stats.compare_pairs(*sides).change == "inconclusive"


@pytest.mark.usefixtures("here")
def test_only_whole_rounds_are_judged_together(tmp_path, capsys):
    """A stop in the middle of the third round leaves two rounds; one cell alone has no such row."""

    class Stops(Opposite):
        def measure(self, cell):
            """Stop before the last process of the third round."""
            if self.count == 5:
                raise KeyboardInterrupt
            return super().measure(cell)

    before, _, log = stacks_of(before=lambda _count: 1000.0)
    assert fight(tmp_path, before, Stops("new", 1.02, log), "--pairs", "3", "--loops", "step", "send_recv") == 130
    lines = capsys.readouterr().out.splitlines()
    pairs = {one: two.partition(" interval ")[2].partition(", ")[2][:7] for one, two in itertools.pairwise(lines)}
    assert pairs["emulator step n=8, env-steps/s: old 1,000, new 1,051"] == "3 pairs"
    assert pairs["emulator, 2 cells together, env-steps/s: old 1,000, new 1,020"] == "2 pairs"

    fight(tmp_path, *stacks_of()[:2], "--pairs", "3")
    assert "together" not in capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_a_drifting_machine_does_not_decide(tmp_path):
    """Public case 58: on a machine that loses 1% a minute, alternating is within 1% of the truth.

    All of one stack before all of the other is not.
    """
    minute = 0

    def slowing(truth):
        def rate(_count):
            nonlocal minute
            minute += 1
            return truth * 0.99**minute

        return rate

    before, after, _ = stacks_of(slowing(1000.0), slowing(1050.0))
    fight(tmp_path, before, after)
    results = [pair["results"] for pair in json.loads((tmp_path / "d.json").read_text())["pairs"]]
    ratio = math.exp(sum(math.log(new["samples"][0] / old["samples"][0]) for old, new in results) / len(results))

    assert ratio == pytest.approx(1.05, rel=0.01)
    assert pytest.approx(0.95, rel=0.01) == 1.05 * 0.99**10  # ten minutes of A, then ten of B: wrong by 10%


@pytest.mark.usefixtures("here")
def test_progress_tells_the_time_left(tmp_path):
    """Ten seconds a process: after the first of three pairs, two pairs of 20 s are left."""
    before, after, _ = stacks_of()
    one = contest.Contest((before, after), command._cells(options(tmp_path)), {}, {})
    now, lines = iter([0.0, 20.0, 40.0, 60.0]), []
    one.run(3, tmp_path / "d.json", lines.append, clock=lambda: next(now))

    assert lines[0] == "pair 1/3 emulator step n=8: old 1,000, new 1,000 env-steps/s; about 40 s left"
    assert [line.rpartition("; ")[2] for line in lines[1:]] == ["about 20 s left", "about 0 s left"]


@pytest.mark.usefixtures("here")
def test_interrupt_keeps_pairs_and_resume_goes_on(tmp_path, capsys):
    """Ctrl-C in the third pair keeps two; resuming measures the others only, in their own order."""
    before, after, log = stacks_of(after=900.0)

    def interrupted(count):
        if count == 2:
            raise KeyboardInterrupt
        return 900.0

    after.rate = interrupted

    assert fight(tmp_path, before, after, "--pairs", "4") == 130
    assert f"--resume {tmp_path / 'd.json'}" in capsys.readouterr().err
    assert len(json.loads((tmp_path / "d.json").read_text())["pairs"]) == 2

    log.clear()
    after.rate, after.count = 900.0, 0
    arguments = options(tmp_path, "--pairs", "4")
    arguments.resume = tmp_path / "d.json"

    assert command.fight(arguments, (before, after), arguments.resume) == 1
    assert [name for name, _ in log] == ["old", "new", "new", "old"]
    kept = json.loads((tmp_path / "d.json").read_text())
    assert [pair["pair"] for pair in kept["pairs"]] == [0, 1, 2, 3]
    assert len(kept["starts"]) == 2


@pytest.mark.usefixtures("here")
def test_a_complete_duel_has_nothing_left_to_do(tmp_path, capsys):
    """Public case 57: resuming a complete duel measures nothing and says the same; more pairs may be added."""
    before, after, log = stacks_of(after=900.0)
    fight(tmp_path, before, after, "--pairs", "3")
    first = capsys.readouterr().out
    log.clear()
    arguments = options(tmp_path, "--pairs", "3")
    arguments.resume = tmp_path / "d.json"

    assert command.fight(arguments, (before, after), arguments.resume) == 1
    assert capsys.readouterr().out == first
    assert log == []
    arguments.pairs = 4
    assert command.fight(arguments, (before, after), arguments.resume) == 1
    assert len(log) == 2


def test_a_duel_from_before_the_cpu_s_numbers_goes_on(tmp_path, here):
    """Its file has the CPU's name only; one that has the numbers is held to them."""
    before, after, log = stacks_of()
    more = options(tmp_path, "--pairs", "2")
    more.resume = tmp_path / "d.json"
    fight(tmp_path, before, after, "--pairs", "1")
    here["cpu_model"] = "family 26"
    command.fight(more, (before, after), more.resume)
    assert len(log) == 4

    fight(tmp_path, before, after, "--pairs", "1")
    here["cpu_model"] = "family 25"
    with pytest.raises(VelocityError, match="another machine's: cpu_model is 'family 26' there, 'family 25' here"):
        command.fight(more, (before, after), more.resume)


@pytest.mark.usefixtures("here")
def test_interrupt_before_the_first_pair(tmp_path):
    """Nothing was measured, so nothing is printed."""

    def interrupted(_count):
        raise KeyboardInterrupt

    before, after, _ = stacks_of(interrupted)
    with pytest.raises(KeyboardInterrupt):
        fight(tmp_path, before, after)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"machine": {"name": "there"}}, "it is another machine's: name is 'there' there, 'here' here"),
        ({"machine": {"variables": {"A": "1"}}}, "it is another machine's: variables is {'A': '1'} there, None here"),
        ({"pins": ("ale-py==9",)}, r"its stacks are others: pins is \['ale-py==1000.0'\] there, \['ale-py==9'\] here"),
        ({"protocol": "quick"}, "its cells are others: protocol is {'name': 'standard'"),
        ({"loops": ["step", "send_recv"]}, "its cells are others: 1 there, 2 here"),
    ],
)
def test_resume_refuses_what_does_not_match(tmp_path, change, reason):
    """Pairs of another machine, of other stacks, of other cells do not mix."""
    before, after, _ = stacks_of()
    fight(tmp_path, before, after, "--pairs", "1")
    path = tmp_path / "d.json"
    if "machine" in change:
        kept = json.loads(path.read_text())
        kept["machine"] |= change["machine"]
        path.write_text(json.dumps(kept))
    after.pins = change.get("pins", after.pins)
    arguments = options(tmp_path, "--protocol", change.get("protocol", "standard"))
    arguments.loops = change.get("loops", arguments.loops)
    arguments.resume = path

    with pytest.raises(VelocityError, match=reason):
        command.fight(arguments, (before, after), path)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("text", ["", "{}", "[1]"])
def test_resume_refuses_other_files(tmp_path, text):
    """A file that is no duel's is named."""
    path = tmp_path / "other.json"
    path.write_text(text)
    before, after, _ = stacks_of()
    arguments = options(tmp_path)
    arguments.resume = path

    with pytest.raises(VelocityError, match=r"other\.json is not a duel's file"):
        command.fight(arguments, (before, after), path)


@pytest.mark.usefixtures("here")
def test_stored_duels_say_the_same(tmp_path, capsys):
    """Verdicts come from the file alone, with a line that tells what was measured where, and what was not."""
    before, after, log = stacks_of(after=900.0)
    fight(tmp_path, before, after, "--pairs", "3", "--loops", "step", "send_recv")
    said = capsys.readouterr().out
    first = tmp_path / "first.json"
    (tmp_path / "d.json").rename(first)
    fight(tmp_path, before, FailsOnce("old", 900.0, log), "--pairs", "3", "--loops", "step", "send_recv")
    again = capsys.readouterr().out

    assert cli.main(["verdicts", str(first), str(tmp_path / "d.json")]) == 0
    out = capsys.readouterr().out
    assert out == (f"old against new: here, pong, standard\n{said}\nold against old: here, pong, standard\n{again}")
    assert out.count(": slower") == 8
    assert "spread between processes" in again
    assert again.endswith("not measured: emulator step n=8: old: broke\n")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pairs": []}, "d.json holds no pair"),
        ({"cells": [{}]}, "d.json is not a duel's file: KeyError('protocol')"),
        ({"stacks": [{"name": "old"}]}, "d.json is not a duel's file: ValueError"),
    ],
)
def test_verdicts_need_a_duels_file(tmp_path, capsys, change, reason):
    """What is wrong is named, with exit code 2, before anything is printed."""
    fight(tmp_path, *stacks_of()[:2], "--pairs", "1")
    good, bad = tmp_path / "good.json", tmp_path / "d.json"
    good.write_text(bad.read_text())
    bad.write_text(json.dumps(json.loads(bad.read_text()) | change))
    capsys.readouterr()

    assert cli.main(["verdicts", str(good), str(bad)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert reason in err


def test_the_published_duels_are_readable(capsys):
    """Those behind docs/findings.md; the emulator's gain by 0.12.0 is a verdict on three machines."""
    files = sorted(MANIFEST.parent.glob("docs/duels/*/*.json"))
    assert cli.main(["verdicts", *map(str, files)]) == 0
    duels = capsys.readouterr().out.split("\n\n")
    assert len(duels) == len(files)
    faster = {
        duel.partition(": ")[2].partition(",")[0]
        for duel in duels
        if "0.12.0: " in duel and "emulator" in duel and re.search(r"env-steps/s:.*\n.*: faster", duel)
    }
    assert faster == {"h200-16-cores", "two-shared-cores", "two-xeon-cores"}


@pytest.mark.usefixtures("here")
def test_nothing_measured_is_an_error(tmp_path):
    """Public case 11: no result is neither the same nor slower, and the reason is told."""
    before, after, log = stacks_of(gap={"reason": "ale-py 0.10.2 has no AtariVectorEnv", "failed": False})

    with pytest.raises(VelocityError, match=r"nothing measured\nemulator step n=8: old: ale-py 0\.10\.2 has no"):
        fight(tmp_path, before, after)
    assert log == [("old", "step")]


@pytest.mark.usefixtures("here")
def test_a_failed_cell_is_an_error_beside_good_ones(tmp_path, capsys):
    """What was measured is printed, and the exit code says that not all was."""
    before, _, log = stacks_of()

    assert fight(tmp_path, before, FailsOnce("new", 1100.0, log), "--loops", "step", "send_recv") == 2
    out = capsys.readouterr().out
    assert "emulator send_recv n=8, env-steps/s: old 1,000, new 1,100" in out
    assert "not measured: emulator step n=8: new: broke" in out
    assert log.count(("new", "step")) == 1


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("works", "code"), [(("1-a", "1-b"), 3), (("1-a", "1-a"), 1), ((None, "1-b"), 1)])
def test_different_work_has_no_verdict(tmp_path, capsys, works, code):
    """Public case 3: neither slower nor faster, by fingerprints of both; pairs without them are judged as before."""

    class Working(FakeStack):
        def measure(self, cell):
            """Add the stack's fingerprint."""
            result = super().measure(cell)
            return {**result, "behaviour": self.work} if self.work else result

    sides = [Working("old", 1000.0, []), Working("new", 900.0, [])]
    for side, work in zip(sides, works, strict=True):
        side.work = work
    assert fight(tmp_path, *sides) == code
    out = capsys.readouterr().out
    different = "different work, no verdict: the same seed and actions gave other observations or rewards"
    assert out.count(different) == (2 if code == 3 else 0)
    assert out.count(": slower") == (0 if code == 3 else 2)
    assert "ratio 0.900" in out


@pytest.mark.usefixtures("here")
def test_cpu_time_that_means_nothing_is_not_judged(tmp_path, capsys):
    """On a GPU the CPU row is n/a with the reason, and cannot be what decides."""

    class OnGpu(FakeStack):
        def measure(self, cell):
            """Say that the learner ran on a GPU."""
            return {**super().measure(cell), "facts": {"device": "cuda"}}

    def both():
        return OnGpu("old", 1000.0, []), OnGpu("new", 1100.0, [])

    assert fight(tmp_path, *both()) == 0
    assert "env-steps/CPU-s: n/a: CPU time leaves out the work of the GPU" in capsys.readouterr().out
    with pytest.raises(VelocityError, match=r"nothing measured\nCPU time leaves out"):
        fight(tmp_path, *both(), "--measure", "cpu")


@pytest.mark.usefixtures("here")
def test_repeated_duels_of_one_stack_count_false_verdicts(tmp_path, capsys):
    """Six duels of two pairs, one of which a lucky stack wins: the rate has its interval, the machine its spread."""

    def lucky(count):
        return 3000.0 if count in (2, 3) else 1000.0 * math.exp(JITTER[count % 10])

    log = []
    one, two = FakeStack("old", 1000.0, log), FakeStack("old", lucky, log)

    assert fight(tmp_path, one, two, "--pairs", "2", "--repeat", "6") == 0
    assert (
        "emulator step n=8, env-steps/s:\n"
        "    false verdicts in 6 duels of 2 pairs: 1, 16.7% (95% interval 0.4% to 64.1%)\n"
        "    spread between processes 31.0%, between the ratios of pairs 42.8%\n"
    ) in capsys.readouterr().out
    assert len(log) == 24


def test_json_has_every_window(tmp_path, here):
    """The file holds stacks, cells, machine, facts, and both results of every pair."""
    before, after, _ = stacks_of()
    fight(tmp_path, before, after, "--pairs", "1")
    kept = json.loads((tmp_path / "d.json").read_text())

    assert kept["stacks"] == [{"name": "old", "pins": ["ale-py==1000.0"]}, {"name": "new", "pins": ["ale-py==1000.0"]}]
    assert kept["machine"] == facts.identity(here)
    assert kept["cells"][0]["protocol"]["name"] == "standard"
    assert [result["samples"] for result in kept["pairs"][0]["results"]] == [[1000.0, 900.0], [1000.0, 900.0]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ale-py-0.12.1", "ale-py-0.12.9x"], "no release 'ale-py-0.12.9x'; did you mean ale-py-0.12"),
        (["ale-py-0.12.1", "ale-py-0.12.0", "--repeat", "9"], "needs one stack twice"),
        (["ale-py-0.12.1", "ale-py-0.12.0", "--json", "/no/where.json"], "there is no folder /no"),
        (["installed", "installed", "--resume", "x", "--json", "y"], "leave --json out"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(capsys, words, message):
    """One message, exit code 2."""
    assert cli.main(["duel", *words, "--manifest", str(MANIFEST)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--pairs", "0"], ["--pairs", "few"], ["--same-within", "0"], ["--counts", "-1"]])
def test_bad_numbers_are_refused(capsys, words):
    """Zero pairs measure nothing."""
    with pytest.raises(SystemExit) as stop:
        cli.main(["duel", "installed", "installed", *words])
    assert stop.value.code == 2
    assert words[0] in capsys.readouterr().err


def manifest_of(path, requirement, python=">=3.10"):
    path.write_text(
        '[series.ale-py]\npackage = "ale-py"\nheld = {}\nreleases = [\n'
        f'{{ version = "1.0", date = 2024-01-01T00:00:00Z, python = "{python}", requirement = "{requirement}" }},\n]\n'
    )
    return path


def test_a_stack_that_does_not_install_gives_pips_reason(tmp_path, monkeypatch):
    """Pip's last lines are the error; the half-made environment is made again next time."""
    monkeypatch.setattr(stacks, "HARNESS", "pip")
    path = manifest_of(tmp_path / "releases.toml", f"ale-py @ file://{tmp_path}/ale_py-1.0-py3-none-any.whl")

    with pytest.raises(VelocityError, match=r"(?s)ale-py-1\.0-py\d+ does not install:.*ale_py-1\.0"):
        stacks.prepare(["ale-py-1.0"], path, lambda _line: None)
    assert not list((tmp_path / ".asv" / "duel").glob("ale-py*/stack.json"))


def test_a_stack_for_another_python_is_refused(tmp_path):
    """The release's own limit is told before pip runs."""
    path = manifest_of(tmp_path / "releases.toml", "ale-py==1.0", python=">=9")

    with pytest.raises(VelocityError, match=r"ale-py-1\.0 needs Python >=9, this is"):
        stacks.prepare(["ale-py-1.0"], path, lambda _line: None)


def test_a_process_refuses_another_stack(tmp_path):
    """A process that does not find its pins measures nothing, and says which."""
    pytest.importorskip("ale_py")
    stack = stacks.Stack("wrong", (sys.executable,), ("ale-py==0.0.1",))
    (cell,) = command._cells(options(tmp_path))
    result = stack.measure(cell)

    assert result["failed"]
    assert "pins ale-py==0.0.1, installed is ale-py" in result["reason"]


def test_a_real_duel_of_the_installed_stack(tmp_path, capfd):
    """Two pairs of real processes: windows of both, CPU time, and the machine's spread."""
    pytest.importorskip("ale_py.vector_env")
    path = tmp_path / "duel.json"
    words = ["--pairs", "2", "--protocol", "quick", "--loops", "step", "--counts", "1", "--json", str(path)]

    assert cli.main(["duel", "installed", "installed", *words, "--manifest", str(MANIFEST)]) in (0, 1, 3)
    kept = json.loads(path.read_text())
    assert [pair["first"] for pair in kept["pairs"]] == [0, 1]
    windows = [len(result["windows"]) for pair in kept["pairs"] for result in pair["results"]]
    assert windows == [PROTOCOLS["quick"].reps] * 4
    assert {result["behaviour"] for pair in kept["pairs"] for result in pair["results"]} == {fingerprint("ale", "pong")}
    assert any(pin.startswith("ale-py==") for pin in kept["stacks"][0]["pins"])
    out, err = capfd.readouterr()
    assert "env-steps/CPU-s" in out
    assert "spread between processes" in out
    assert "pair 2/2 emulator step n=1" in err


def test_units_and_samples_belong_together():
    """Each measure has a unit and samples."""
    assert report.UNITS.keys() == report.SAMPLES.keys()


def test_a_stack_layer_sees_what_its_series_holds(tmp_path, monkeypatch):
    """Layers see the held packages below them, their own first, and neither the caller's path nor its packages."""
    made = []

    def pip_into(command, _failure):
        if "pip" not in command:
            return real_run(command, _failure)
        folder = layer.site_packages(Path(command[0]).parent.parent)
        made.append(command[command.index("--disable-pip-version-check") + 1 :])
        already = made[0] if len(made) > 1 else []
        for requirement in set(made[-1]) - set(already):
            name, _, version = requirement.partition("==")
            (folder / f"{name}.py").write_text(f"here = {version!r}\n")
        return None

    real_run = stacks._run
    monkeypatch.setattr(stacks, "_run", pip_into)
    manifest = tmp_path / "releases.toml"
    manifest.write_text(
        '[series.s]\npackage = "moving"\nheld = { heavy = "1.0" }\nreleases = [\n'
        '{ version = "2.0", date = 2024-01-01T00:00:00Z },\n{ version = "3.0", date = 2024-01-02T00:00:00Z },\n]\n'
    )
    two, three = stacks.prepare(["s-2.0", "s-3.0"], manifest, lambda _line: None)

    assert made == [["heavy==1.0", "packaging>=24"], ["moving==2.0", "heavy==1.0"], ["moving==3.0", "heavy==1.0"]]
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "moving.py").write_text("here = 'elsewhere'\n")
    for stack, version in ((two, "2.0"), (three, "3.0")):
        code = "import moving, heavy, ale_velocity; print(moving.here, heavy.here)"
        seen = subprocess.run([*stack.interpreter, "-c", code], capture_output=True, text=True, check=True)
        assert seen.stdout == f"{version} 1.0\n"

    made.clear()
    stacks.prepare(["s-2.0", "s-3.0"], manifest, lambda _line: None)
    assert made == []


def test_releases_are_laid_over_the_torch_that_is_there(tmp_path, monkeypatch):
    """No torch is installed, each layer sees this Python's; another one than the held is refused first."""
    made = []
    real_run = stacks._run
    monkeypatch.setattr(
        stacks,
        "_run",
        lambda command, failure: made.append(command) if "pip" in command else real_run(command, failure),
    )
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "torch.py").write_text("here = 'of the machine'\n")
    torch = installed.Torch("2.11.0+cu130", (tmp_path / "node",))
    monkeypatch.setattr(stacks, "find_torch", lambda: torch)
    manifest = tmp_path / "releases.toml"
    manifest.write_text(
        "".join(
            f'[series.{name}]\npackage = "moving"\nheld = {{ torch = "{version}" }}\nreleases = [\n'
            '{ version = "2.0", date = 2024-01-01T00:00:00Z },\n]\n'
            for name, version in (("s", "2.11.0"), ("other", "2.12.0"))
        )
    )
    with pytest.raises(VelocityError, match=r"other-2\.0 holds another torch than 2\.11\.0\+cu130, which is installed"):
        stacks.prepare(["s-2.0", "other-2.0"], manifest, lambda _line: None, preinstalled=True)
    assert made == []

    (stack,) = stacks.prepare(["s-2.0"], manifest, lambda _line: None, preinstalled=True)
    (pip,) = made
    assert pip[pip.index("--disable-pip-version-check") + 1 :] == ["moving==2.0", "torch==2.11.0", "packaging>=24"]
    code = "import torch, ale_velocity; print(torch.here)"
    seen = subprocess.run([*stack.interpreter, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout == "of the machine\n"
    assert not (tmp_path / "node" / "__pycache__").exists(), "the machine's torch stays as it is"
    assert list(tmp_path.glob(".asv/duel/s-2.0-preinstalled-*/pycache/**/torch.*.pyc"))
