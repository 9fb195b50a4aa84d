"""Verdicts on one benchmark: direction, processes, factor."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ale_velocity.asv_plugin.judge import BETTER, FAILED, INCOMPARABLE, MENDED, UNCHANGED, WORSE, judge
from ale_velocity.asv_plugin.sides import Cell
from planted import REPS, windows

RATE = {"type": "track", "unit": "env-steps/s"}
STEP_TIME = {"type": "track", "unit": "microseconds/step"}
OWN_TIME = {"type": "time", "unit": "seconds"}
BYTES = {"type": "peakmemory", "unit": "bytes"}


def cell(value, *, processes=None, version="1", **options):
    """Return a side's cell, with samples of that many processes."""
    samples = windows(value, processes=processes, **options) if processes else None
    return Cell("suite.Any.track", value, None, samples, version, REPS)


@pytest.mark.parametrize("processes", [None, 1, 6])
@pytest.mark.parametrize(
    ("benchmark", "after", "mark"),
    [
        (RATE, 150.0, BETTER),
        (RATE, 70.0, WORSE),
        (STEP_TIME, 150.0, WORSE),
        (STEP_TIME, 70.0, BETTER),
        (RATE, 100.0, UNCHANGED),
        (STEP_TIME, 100.0, UNCHANGED),
    ],
)
def test_large_changes_have_the_direction_of_their_unit(benchmark, after, mark, processes):
    """With no samples stored, with one process a side, and with several."""
    verdict = judge(cell(100.0, processes=processes), cell(after, processes=processes), benchmark, 1.1, use_stats=True)
    assert verdict.mark == mark
    assert verdict.ratio == pytest.approx(after / 100, rel=0.001)


@pytest.mark.parametrize(("better", "worse"), [((RATE, 120.0), (RATE, 80.0)), ((STEP_TIME, 80.0), (STEP_TIME, 120.0))])
def test_a_rate_and_a_time_of_one_loop_never_disagree(better, worse):
    """Both 20% better are both better, and the mirror (github-action-benchmark issue 365)."""
    for (benchmark, after), mark in ((better, BETTER), (worse, WORSE)):
        assert judge(cell(100.0, processes=5), cell(after, processes=5), benchmark, 1.1, use_stats=True).mark == mark


@pytest.mark.parametrize(("after", "mark"), [(105.0, BETTER), (95.0, WORSE)])
def test_small_changes_need_processes_and_a_small_factor(after, mark):
    """5% is undecided with one process a side, found with six, and hidden by a factor of 1.1."""
    one, six = ((cell(100.0, processes=number), cell(after, processes=number)) for number in (1, 6))
    assert judge(*one, RATE, 1.04, use_stats=True).mark == UNCHANGED
    assert judge(*one, RATE, 1.04, use_stats=True).undecided
    assert judge(*six, RATE, 1.04, use_stats=True).mark == mark
    assert judge(*six, RATE, 1.1, use_stats=True).mark == UNCHANGED
    assert not judge(*six, RATE, 1.1, use_stats=True).undecided


def test_windows_of_one_process_do_not_make_a_verdict():
    """asv's own test would call 5 against 5 windows of one process a side different."""
    before, after = windows(100.0, spread=0.001), windows(110.0, spread=0.001)
    verdict = judge(Cell("b", 100.0, None, before, "1", REPS), Cell("b", 110.0, None, after, "1", REPS), RATE, 1.05,
                    use_stats=True)  # fmt: skip
    assert (verdict.mark, verdict.undecided) == (UNCHANGED, True)
    assert "one process a side" in verdict.comparison.reason


@pytest.mark.parametrize(("spread", "mark"), [(0.01, BETTER), (1.0, UNCHANGED)])
def test_windows_that_spread_are_no_verdict_on_one_process(spread, mark):
    """45% more are one where the windows of a process agree."""
    before, after = (cell(value, processes=1, spread=spread) for value in (100.0, 145.0))
    assert judge(before, after, RATE, 1.05, use_stats=True).mark == mark


def test_without_statistics_only_the_factor_counts():
    """As --no-stats says."""
    assert judge(cell(100.0), cell(95.0), RATE, 1.04, use_stats=False).mark == WORSE
    assert judge(cell(100.0), cell(95.0), RATE, 1.1, use_stats=False).mark == UNCHANGED


def test_overlap_is_undecided_and_apart_is_a_verdict():
    """Two result sets whose processes overlap, then clearly apart (asv pull requests 493 and 754)."""
    overlapping = judge(
        cell(100.0, processes=4, spread=0.1), cell(108.0, processes=4, spread=0.1), RATE, 1.05, use_stats=True
    )
    assert (overlapping.mark, overlapping.undecided) == (UNCHANGED, True)
    apart = judge(
        cell(100.0, processes=4, spread=0.01), cell(150.0, processes=4, spread=0.01), RATE, 1.05, use_stats=True
    )
    assert (apart.mark, apart.undecided) == (BETTER, False)


def test_noise_of_8_percent_is_no_verdict_and_a_loss_of_10_is_found():
    """A factor of 1.05 on identical code gives no verdict; a true loss of 10% gives one once enough rounds ran."""
    noise = np.random.default_rng(752)  # asv issue 752

    def side(value, processes):
        samples = [value * noise.normal(1, 0.08) for _ in range(processes)]
        return Cell("b", value, None, [sample for sample in samples for _ in range(REPS)], "1", REPS)

    assert judge(side(100.0, 5), side(100.0, 5), RATE, 1.05, use_stats=True).mark == UNCHANGED
    assert judge(side(100.0, 60), side(90.0, 60), RATE, 1.05, use_stats=True).mark == WORSE


def test_samples_that_are_not_whole_processes_count_as_one_on_both_sides():
    """A side's best windows must not be compared with the other side's median."""
    broken = Cell("b", 100.0, None, [100.0] * (REPS + 1), "1", REPS)
    verdict = judge(broken, cell(150.0, processes=6), RATE, 1.1, use_stats=True)
    assert verdict.ratio == pytest.approx(1.5)
    assert verdict.comparison.low is None


@pytest.mark.parametrize(
    ("before", "after", "mark"),
    [
        (100.0, None, FAILED),
        (math.nan, None, FAILED),
        (None, 100.0, MENDED),
        (None, None, UNCHANGED),
        (math.nan, 100.0, UNCHANGED),
        (100.0, math.nan, UNCHANGED),
    ],
)
def test_missing_values_have_no_ratio(before, after, mark):
    """Failed is not skipped; neither is a number."""
    verdict = judge(cell(before), cell(after), RATE, 1.1, use_stats=True)
    assert verdict.mark == mark
    assert math.isnan(verdict.ratio)


def test_another_benchmark_version_has_no_ratio():
    """It is other work, and asv would print a ratio."""
    verdict = judge(cell(100.0), cell(200.0, version="2"), RATE, 1.1, use_stats=True)
    assert verdict.mark == INCOMPARABLE
    assert math.isnan(verdict.ratio)


@pytest.mark.parametrize("benchmark", [OWN_TIME, BYTES])
def test_what_asv_measures_itself_is_judged_by_asv(benchmark):
    """Its test of samples, in its direction; zero has no ratio but a direction."""
    assert judge(cell(100.0), cell(150.0), benchmark, 1.1, use_stats=True).mark == WORSE
    assert judge(cell(100.0), cell(70.0), benchmark, 1.1, use_stats=True).mark == BETTER
    assert judge(cell(0.0), cell(70.0), benchmark, 1.1, use_stats=True).mark == WORSE
    wide = {"ci_99_a": 0.0, "ci_99_b": 1000.0, "q_25": 90.0, "q_75": 160.0}
    unclear = judge(Cell("b", 100.0, wide), Cell("b", 150.0, wide), benchmark, 1.1, use_stats=True)
    assert (unclear.mark, unclear.undecided, unclear.comparison) == (UNCHANGED, True, None)
