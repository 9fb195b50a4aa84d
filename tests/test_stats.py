"""Intervals and verdicts: against scipy, against hand-made cases, and by a small seeded simulation."""

import math

import numpy as np
import pytest
from scipy.stats import linregress, t, ttest_1samp, ttest_ind, ttest_rel

import simulate_verdicts
from ale_velocity import stats
from ale_velocity.errors import VelocityError
from ale_velocity.stats import CPU_UNIT, WALL_UNIT, Interval

BEFORE = [1000.0, 1010.0, 990.0, 1004.0, 996.0, 1008.0]
AFTER = [1030.0, 1041.0, 1022.0, 1036.0, 1024.0, 1035.0]


def test_mean_interval_is_students():
    """The interval over windows agrees with scipy's."""
    interval = stats.mean_interval(BEFORE)
    expected = ttest_1samp(BEFORE, 0).confidence_interval(0.95)

    assert pytest.approx([expected.low, expected.high]) == [interval.low, interval.high]


def test_one_window_has_no_width():
    """One window gives a mean and no spread."""
    assert Interval(7.0, 0.0) == stats.mean_interval([7.0])


def test_unpaired_interval_is_students_on_logarithms():
    """The 95% interval of a ratio agrees with scipy's pooled one of the logarithms."""
    comparison = stats.compare_processes(BEFORE, AFTER)
    expected = ttest_ind(np.log(AFTER), np.log(BEFORE)).confidence_interval(0.95)

    assert pytest.approx([math.exp(expected.low), math.exp(expected.high)]) == [comparison.low, comparison.high]


def test_paired_interval_is_students_on_logarithms():
    """The 95% interval of a duel's ratio agrees with scipy's paired one of the logarithms."""
    comparison = stats.compare_pairs(BEFORE, AFTER)
    expected = ttest_rel(np.log(AFTER), np.log(BEFORE)).confidence_interval(0.95)

    assert pytest.approx([math.exp(expected.low), math.exp(expected.high)]) == [comparison.low, comparison.high]


PACES = [1.0, 1.2, 0.9, 1.05, 0.8, 1.1, 0.95, 1.02, 1.15, 0.85]


def test_pairs_in_turn_are_compared_at_equal_pace():
    """The intercept of scipy's line through the logarithms, with its own error and n - 2 degrees of freedom."""
    rng = np.random.default_rng(5)
    before = [1000.0] * len(PACES)
    after = list(1050 * np.array(PACES) ** 0.6 * np.exp(rng.normal(0, 0.02, len(PACES))))
    line = linregress(np.log(PACES), np.log(after) - np.log(before))
    half_width = t.ppf(0.975, len(PACES) - 2) * line.intercept_stderr
    found = stats.compare_in_turn(before, after, paces=PACES)

    expected = [line.intercept, line.intercept - half_width, line.intercept + half_width]
    assert pytest.approx(np.exp(expected)) == [found.ratio, found.low, found.high]
    assert (found.change, found.at_equal_pace) == ("more", True)
    plain = stats.compare_pairs(before, after)
    assert (plain.change, plain.at_equal_pace) == ("inconclusive", False)


@pytest.mark.parametrize(
    "paces",
    [[], [1.0] * 10, [1.05] * 9 + [0.95], [1.2] * 10],
    ids=["unknown", "equal", "hardly another", "no line"],
)
def test_without_another_pace_pairs_in_turn_are_pairs(paces):
    """And so they are where there are too few for a line."""
    before = (BEFORE + AFTER)[:10]
    after = (AFTER + BEFORE)[:10]
    assert stats.compare_in_turn(before, after, paces=paces) == stats.compare_pairs(before, after)
    assert stats.compare_in_turn(before[:7], after[:7], paces=PACES[:7]) == stats.compare_pairs(before[:7], after[:7])


@pytest.mark.parametrize(("follows", "gains"), [(0.0, False), (0.7, True)])
def test_error_rates_at_equal_pace_by_simulation(follows, gains):
    """False verdicts stay below 1% whether or not rates follow the pace; where they do, more gains are found."""
    rows = simulate_verdicts.paced_rates(10, follows, trials=1500, seed=3)

    for row in rows.values():
        assert row.false <= 0.01
        assert 0.93 <= row.coverage <= 0.97
    assert (rows["with paces"].power > 2 * rows["values alone"].power) == gains


@pytest.mark.parametrize("compare", [stats.compare_processes, stats.compare_pairs])
def test_directions(compare):
    """A clear gain is more, the mirror of it less, and their ratios are each other's reciprocals."""
    gain, loss = compare(BEFORE, AFTER), compare(AFTER, BEFORE)

    assert (gain.change, loss.change) == ("more", "less")
    assert pytest.approx(1) == gain.ratio * loss.ratio


@pytest.mark.parametrize("compare", [stats.compare_processes, stats.compare_pairs])
@pytest.mark.parametrize(("before", "after"), [(BEFORE, AFTER), (AFTER, BEFORE), (BEFORE[:2], AFTER[:2])])
def test_a_rate_and_its_time_never_disagree(compare, before, after):
    """Public case 2: seconds a step are the reciprocal of steps a second, and so are their verdicts."""
    mirrored = {"more": "less", "less": "more", "inconclusive": "inconclusive", "same": "same"}
    by_rate = compare(before, after)
    by_time = compare([1 / value for value in before], [1 / value for value in after])

    assert by_time.change == mirrored[by_rate.change]
    assert by_time.ratio == pytest.approx(1 / by_rate.ratio)


@pytest.mark.parametrize("compare", [stats.compare_processes, stats.compare_pairs])
def test_same_states_its_bound(compare):
    """Without a change, an interval inside the margin is a statement of equality."""
    shuffled = [1002.0, 1008.0, 991.0, 1002.0, 999.0, 1006.0]
    comparison = compare(BEFORE, shuffled)
    bound = max(1 - comparison.low, comparison.high - 1)

    assert comparison.change == "same"
    assert f"same within {math.ceil(bound * 1000) / 10:.1f}%" == comparison.reason
    assert compare(BEFORE, shuffled, same_within=bound / 2).change == "inconclusive"


def test_inconclusive_says_how_many():
    """A plan that is followed settles the same difference and spread."""
    before, after = [1000.0, 1040.0, 980.0, 1010.0], [1040.0, 1030.0, 1010.0, 1030.0]
    comparison = stats.compare_pairs(before, after)

    assert comparison.change == "inconclusive"
    assert f"inconclusive: needs about {comparison.needed} pairs" == comparison.reason
    repeats = math.ceil(comparison.needed / 4)
    assert stats.compare_pairs(before * repeats, after * repeats).change == "more"


def test_a_hopeless_plan_is_not_a_number():
    """Where noise would need thousands of pairs, the reason says so."""
    comparison = stats.compare_pairs([1000.0, 2000.0], [2000.0, 1040.0])

    assert comparison.needed is None
    assert comparison.reason == "inconclusive: needs more than 1000 pairs"


@pytest.mark.parametrize("compare", [stats.compare_processes, stats.compare_pairs])
@pytest.mark.parametrize(
    ("after", "change"), [(1410.0, "more"), (1390.0, "inconclusive"), (720.0, "inconclusive"), (710.0, "less")]
)
def test_one_process_a_side(compare, after, change):
    """With one process a side only what no spread between processes explains is a verdict, without an interval."""
    comparison = compare([1000.0], [after])

    assert (change, None, None) == (comparison.change, comparison.low, comparison.high)


@pytest.mark.parametrize("compare", [stats.compare_processes, stats.compare_pairs])
def test_noisy_windows_ask_for_more_of_one_process_a_side(compare):
    """A cell on a shared machine once lost 29% to the release after it, and lost nothing by duels and elsewhere."""
    before = [2193.0, 1612.0, 1872.0, 2050.0, 2025.0]
    after = [1549.0, 1475.0, 1453.0, 1377.0, 1395.0]
    windows = stats.windows_spread(before, after)
    assert windows == pytest.approx(math.hypot(np.std(np.log(before), ddof=1), np.std(np.log(after), ddof=1)))

    assert compare([max(before)], [max(after)]).change == "less"
    noisy = compare([max(before)], [max(after)], windows=windows)
    assert noisy.change == "inconclusive"
    assert "only a change beyond x1.63 counts" in noisy.reason
    assert compare([max(before)], [max(after) / 1.2], windows=windows).change == "less"


def test_one_window_tells_nothing_of_spread():
    assert stats.windows_spread([1000.0], [1100.0]) == 0.0


def test_one_process_against_many_is_one_process():
    """Many processes on one side do not tell how unlucky the single one on the other was."""
    assert stats.compare_processes([1000.0] * 9, [1100.0]).change == "inconclusive"


def test_equal_samples_do_not_make_a_spread_of_zero():
    """Rates rounded to 4 digits can agree by chance; two such pairs are no verdict on 2%."""
    assert stats.compare_pairs([1000.0, 1000.0], [1025.0, 1025.0]).change == "inconclusive"


def test_eight_percent_of_noise_is_no_verdict_and_a_loss_of_ten_is_found():
    """Public case 37: no alarm on identical code at 8% noise; a true loss of 10% is flagged with enough processes."""
    rng = np.random.default_rng(37)
    before, again, other = (list(1000 * np.exp(rng.normal(0, 0.08, 60))) for _ in range(3))

    assert stats.compare_processes(before[:6], again[:6]).change not in ("more", "less")
    assert stats.compare_processes(before, [0.9 * value for value in other]).change == "less"


def test_best_window_for_wall_rates_mean_for_others():
    """What stands for a process depends on what can disturb it."""
    samples = [1.0, 3.0, 2.0, 6.0, 5.0, 4.0]

    assert stats.process_values(samples, 3, WALL_UNIT) == [3.0, 6.0]
    assert stats.process_values(samples, 3, CPU_UNIT) == [2.0, 5.0]


@pytest.mark.parametrize(("samples", "count"), [([], 0), ([1.0] * 7, 7)])
def test_windows_must_be_whole_processes(samples, count):
    """A remainder is an error: some process was cut short, or `reps` is another protocol's."""
    with pytest.raises(VelocityError, match=f"{count} samples are not whole processes of 5 windows"):
        stats.process_values(samples, 5, WALL_UNIT)


@pytest.mark.parametrize("compare", [stats.compare_processes, stats.compare_pairs])
def test_nothing_and_nonsense_are_refused(compare):
    """No values, and values that are no rates, are errors."""
    with pytest.raises(VelocityError, match="nothing measured"):
        compare([], [])
    with pytest.raises(VelocityError, match="positive and finite"):
        compare([1.0, math.inf], [1.0, 1.0])


def test_pairs_must_match():
    """A value without its partner is an error."""
    with pytest.raises(VelocityError, match="2 values before and 1 after are not pairs"):
        stats.compare_pairs([1.0, 2.0], [1.0])


@pytest.mark.parametrize("name", ["unpaired", "pairs"])
@pytest.mark.parametrize(("number", "spread"), [(2, 0.05), (10, 0.01)])
def test_error_rates_by_simulation(name, number, spread):
    """False verdicts, power and coverage keep to what tools/simulate_verdicts.py states; bounds are 3 sigma wide."""
    compare = simulate_verdicts.COMPARISONS[name]
    rates = simulate_verdicts.rates(compare, (number, number), (spread, spread), trials=1000, seed=1)

    assert rates.false <= 0.015
    assert 0.92 <= rates.coverage <= 0.98
    if number == 10:
        assert rates.power >= 0.8


@pytest.mark.parametrize(
    ("numbers", "spreads", "most"),
    [(*sides, most) for sides, most in zip(simulate_verdicts.UNEQUAL, (0.05, 0.01, 0.01, 0.02), strict=True)],
)
def test_unequal_sides(numbers, spreads, most):
    """Unequal numbers and spreads keep false verdicts rare, but for a noisy few against a quiet many: up to 3.5%."""
    rates = simulate_verdicts.rates(stats.compare_processes, numbers, spreads, trials=500, seed=1)

    assert rates.false <= most


def test_windows_interval_covers():
    """The interval over the windows of a process holds its rate in 95% of cases."""
    assert 0.93 <= simulate_verdicts.window_coverage(trials=1000, seed=1) <= 0.97


def test_estimators_were_chosen_by_power():
    """Under interference the best window finds more than the mean, on a quiet machine it loses little."""
    found = {
        (machine, name): simulate_verdicts.estimator_rates(machine, name, pairs=10, trials=100, seed=1).power
        for machine in simulate_verdicts.MACHINES
        for name in ("mean", "best")
    }

    assert found["interfered", "best"] > 2 * found["interfered", "mean"]
    assert found["quiet", "best"] > 0.95 * found["quiet", "mean"]


def test_few_noisy_processes_against_many_quiet_ones_are_no_verdict():
    """Two processes at 5% against twenty at 0.5%: the small side's spread is not to be trusted."""
    rates = simulate_verdicts.rates(stats.compare_processes, (2, 20), (0.05, 0.005), trials=1000, seed=3)

    assert rates.false <= 0.01
