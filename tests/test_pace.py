"""The machine's own pace: read, recorded, and no release's doing."""

from __future__ import annotations

import os

import pytest

from ale_velocity import pace, stats
from ale_velocity.asv_plugin.machine import warn_of_other_pace
from ale_velocity.cell import append_record
from ale_velocity.stats import CPU_UNIT, WALL_UNIT
from planted import NEW, OLD, RATE, Project, table, windows

WHAT_CHANGED = [("same", 1.0), ("gain", 1.5), ("loss", 0.7)]


def clock_of(durations):
    """A clock whose successive pairs of reads are `durations` apart."""
    for duration in durations:
        yield 0.0
        yield duration


@pytest.fixture
def cores(monkeypatch):
    """Let this process have ten cores; return the list of where it was moved to."""
    moves = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(10)), raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: moves.append(cores), raising=False)
    return moves


def test_a_reading_is_of_all_cores(cores):
    """Of each the quicker of two, since an interrupt only ever adds; of many cores some; then all are usable."""
    clock = clock_of([0.3, 0.1, 0.1, 0.3, 0.12, 0.12, 0.3, 0.1, 0.4, 0.22341])
    assert pace.read(lambda: None, lambda: next(clock)) == pytest.approx(
        (0.1 + 0.1 + 0.12 + 0.1 + 0.22341) / 5, abs=5e-5
    )
    assert cores == [{0}, {2}, {4}, {6}, {8}, set(range(10))]


def test_a_core_that_was_taken_away_is_no_error(cores, monkeypatch):
    """The reading is then of where the thread is."""

    def refuse(_, wanted):
        if len(wanted) == 1:
            raise OSError(22, "Invalid argument")
        cores.append(wanted)

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    assert pace.read() > 0
    assert cores == [set(range(10))]


def test_where_threads_cannot_be_moved_one_reading_will_do(monkeypatch):
    """As on macOS and Windows."""
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    clock = clock_of([0.3, 0.123456])
    assert pace.read(lambda: None, lambda: next(clock)) == 0.1235


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be moved here")
def test_the_thread_may_run_everywhere_afterwards():
    """Also when the work is stopped on a core."""
    usable = os.sched_getaffinity(0)
    with pytest.raises(KeyboardInterrupt):
        pace.read(_stopped)
    assert os.sched_getaffinity(0) == usable


def _stopped():
    raise KeyboardInterrupt


def test_an_unsteady_clock_is_probed_again_and_kept_with_a_flag():
    """Public case 53: bounded tries, a result that is kept and flagged, never nothing."""
    clock = clock_of([1.0, *[1.2] * 9] * pace.PROBE_TRIES)
    assert pace.probe(lambda: None, lambda: next(clock)) == {"drift": 0.2, "tries": 3, "steady": False}


def test_a_steady_second_try_is_enough():
    """One disturbed probe is not a drift."""
    clock = clock_of([1.0, *[1.2] * 9, *[1.0] * 10])
    assert pace.probe(lambda: None, lambda: next(clock)) == {"drift": 0.0, "tries": 2, "steady": True}


@pytest.mark.parametrize(
    ("before", "after", "unit", "ratio"),
    [
        ([[4, 8, 12]], [[9, 15, 25]], WALL_UNIT, 0.5),  # of the best window: a quiet moment beside it is not enough
        ([[4, 8, 6]], [[8, 16, 12]], CPU_UNIT, 0.5),  # the mean of the windows
        ([[4, 4], [16, 16]], [[4, 4]], WALL_UNIT, 2.0),  # the geometric mean of processes
        ([], [[4, 4]], WALL_UNIT, 1.0),  # not recorded
        ([[4, 4]], [[8, 8]], "percent of ceiling", 1.0),  # both of its parts were measured at one pace
    ],
)
def test_paces_compare_as_rates_do(before, after, unit, ratio):
    """Of the same windows and processes."""
    assert stats.pace_ratio(before, after, unit) == pytest.approx(ratio)


@pytest.fixture
def compared(tmp_path):
    """Run `asv compare` on a gain, a loss and no change, measured at these paces; return its output and table."""
    project = Project(tmp_path / "project")

    def compare(before, after, processes=6):
        project.add_benchmark(RATE, WALL_UNIT, params=tuple(name for name, _ in WHAT_CHANGED))
        for release, seconds, is_new in ((OLD, before, False), (NEW, after, True)):
            values = [windows(1000 * (factor if is_new else 1), processes=processes) for _, factor in WHAT_CHANGED]
            path = project.add_result(release, {RATE: values})
            for place in range(len(WHAT_CHANGED) * processes):
                project.add_record(path, f"{RATE}-{place % len(WHAT_CHANGED)}", pace_s=[seconds] * 6)
        done = project.asv("compare", OLD, NEW)
        assert done.returncode == 0, done.stdout
        return done.stdout, {name[name.index("(") + 2 : -2]: row for name, row in table(done.stdout).items()}

    return compare


def test_a_steady_machine_changes_no_verdict(compared):
    """Readings differ a little everywhere."""
    _, rows = compared(0.010, 0.0104)
    assert {name: row[0] for name, row in rows.items()} == {"same": "", "gain": "-", "loss": "+"}
    assert rows["same"][3] == "1.00"


@pytest.mark.parametrize("processes", [1, 6])
def test_a_machine_that_became_faster_is_no_gain(compared, processes):
    """The cores' pace explains the gain, would hide a loss, and makes the loss that is left greater."""
    output, rows = compared(0.015, 0.010, processes)
    assert {name: row[0] for name, row in rows.items()} == {"same": "", "gain": "", "loss": "+"}
    assert (rows["gain"][3], rows["same"][3]) == ("~1.50", "~1.00")
    assert "the machine's own pace was 1.50 times that of before; needs both measured in turn" in output


def test_a_machine_that_became_slower_is_no_loss(compared):
    """The other way round."""
    _, rows = compared(0.010, 0.015)
    assert {name: row[0] for name, row in rows.items()} == {"same": "", "gain": "-", "loss": ""}


@pytest.mark.parametrize(
    ("now", "said"),
    [(0.0102, ""), (0.0128, ""), (0.024, "run 0.50 times as fast as when"), (0.006, "run 2.00 times as fast as when")],
)
def test_another_pace_is_said_before_anything_is_measured(tmp_path, caplog, now, said):
    """Under the name of stored results, among which it may vary; a record without a pace, or none at all, is silent."""
    warn_of_other_pace(tmp_path, now)
    append_record(tmp_path / "cells.jsonl", {"reason": "n/a"})
    warn_of_other_pace(tmp_path, now)
    assert caplog.text == ""
    append_record(tmp_path / "cells.jsonl", {"pace_s": [0.012, 0.010, 0.013]})
    warn_of_other_pace(tmp_path, now)
    assert said in caplog.text
    assert bool(said) == bool(caplog.text)


@pytest.mark.parametrize(("pace", "change"), [(1.0, "more"), (1.05, "more"), (1.5, "inconclusive"), (0.7, "more")])
def test_pairs_are_held_to_their_machine_s_pace(pace, change):
    """Where it was another within pairs; a gain in spite of a slower machine is one."""
    before = windows(100, processes=6)
    found = stats.compare_pairs(
        before, [value * 1.3 for value in windows(100, processes=6)], paces=[pace] * len(before)
    )
    assert found.change == change
    assert found.ratio == pytest.approx(1.3)
    assert ("another within pairs" in found.reason) == (change == "inconclusive")
