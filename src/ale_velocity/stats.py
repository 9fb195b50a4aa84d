"""Intervals, and verdicts on a change of a rate: what counts is processes, not windows.

Windows of one process share its luck (memory layout, placement, what else ran then), so they are one
observation. All comparisons are of logarithms: a change is a ratio, and its noise is a ratio too.
tools/simulate_verdicts.py prints the error rates of these functions.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ale_velocity.errors import VelocityError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WALL_UNIT = "env-steps/s"
CPU_UNIT = "env-steps/CPU-s"

CONFIDENCE = 0.95
# A verdict's own level: half of the 1% of false verdicts that the project allows, since real noise is not normal.
VERDICT_CONFIDENCE = 0.995
POWER = 0.8  # the chance to find a change, for which the number of processes or pairs is planned
SAME_WITHIN = 0.02  # a change that most users would not act on
# With one process a side nothing says how much processes differ. This excludes a spread of 8.5% at VERDICT_CONFIDENCE
# (2.81 * sqrt(2) * 8.5%), more than means of windows had on a shared two-core machine (7.3%). Where processes differ
# by more it is no protection: at 19%, with windows of 0.2 s on a busy machine, 35 of 200 identical pairs lay beyond it.
# Windows tell of such machines: of 148 cells of releases that differ by 10% or less, on four machines, one process
# each, the ratio was off by 6% (root mean square) where its sides' windows spread by less than 2.5%, and by 14% where
# by 10 to 17%. So their spread widens the limit, see `windows_spread`.
ONE_PROCESS_LIMIT = math.log(1.4)
MOST_UNEQUAL = 2  # times as many processes on one side; beyond, the small side's spread is not to be trusted
ASSUMED_SPREAD = 0.016  # that measured spread, to plan a number of processes where nothing else is known
# Samples have 4 significant digits, steps of up to 0.1%: a spread cannot be known to be less than that of a step.
ROUNDING_SPREAD = 1e-3 / math.sqrt(12)
MOST_PLANNED = 1000  # beyond so many processes or pairs, the exact number helps nobody
PACE_WITHIN = math.log(1.1)  # readings of a machine's pace differ by less where nothing disturbs it
# Fewer pairs lose more by a line's two degrees of freedom than paces tell: with 7 the interval of a verdict is 1.23
# times as wide if the spread stays, with 10 1.11 times.
LEAST_FOR_LINE = 8

Change = Literal["more", "less", "same", "inconclusive"]


@dataclass(frozen=True)
class Interval:
    """A mean and the half-width of its confidence interval, in the unit of the values."""

    mean: float
    half_width: float

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half_width


@dataclass(frozen=True)
class Comparison:
    """What became of a rate: `ratio` is after / before, `low` and `high` are its 95% interval.

    The interval is None where one process a side tells nothing about spread. `change` is `more` or `less` where
    the 99.5% interval excludes no change; else `same` where the 95% interval lies within the margin asked for;
    else `inconclusive`. `reason` says why in words; `needed` is how many processes a side, or pairs, would
    probably settle it, None where it is settled or where more than 1000 would be needed. `at_equal_pace` says that
    the ratio is what equal paces of the machine would give, see `compare_in_turn`.
    """

    ratio: float
    low: float | None
    high: float | None
    change: Change
    reason: str
    needed: int | None = None
    at_equal_pace: bool = False


@dataclass(frozen=True)
class _Error:
    """A standard error and its degrees of freedom."""

    value: float
    freedom: float

    def half_width(self, confidence: float) -> float:
        """Half-width of the t interval."""
        return _t_quantile(confidence, self.freedom) * self.value


@dataclass(frozen=True)
class _Fit:
    """What pairs say: the logarithm of their ratio, how much they spread around it, and how well that is known.

    The variance of `difference` is the share `leverage` of that of a pair; `freedom` are the spread's.
    """

    difference: float
    spread: float
    leverage: float
    freedom: int


@dataclass(frozen=True)
class _Plan:
    """How many pairs, or processes a side, would probably settle a comparison; None for more than `MOST_PLANNED`."""

    number: int | None
    unit: str

    def __str__(self) -> str:
        return f"about {self.number} {self.unit}" if self.number else f"more than {MOST_PLANNED} {self.unit}"


@dataclass(frozen=True)
class _Design:
    """How a difference of logarithms is measured: from pairs (`groups` 1) or from two groups of processes (2)."""

    groups: int
    unit: str

    def plan(self, spread: float, difference: float, same_within: float, *, more_than: int) -> _Plan:
        """Find the smallest number that settles a difference like the one seen, if it is real, with 80% power."""
        power = statistics.NormalDist().inv_cdf(POWER)

        def is_settled(number: int) -> bool:
            def reach(confidence: float) -> float:
                quantile = _t_quantile(confidence, self.groups * (number - 1))
                return (quantile + power) * spread * math.sqrt(self.groups / number)

            return reach(VERDICT_CONFIDENCE) <= abs(difference) or reach(CONFIDENCE) <= same_within - abs(difference)

        numbers = range(more_than + 1, MOST_PLANNED + 1)
        place = bisect.bisect_left(numbers, True, key=is_settled)
        return _Plan(numbers[place] if place < len(numbers) else None, self.unit)


PAIRS = _Design(groups=1, unit="pairs")
PROCESSES = _Design(groups=2, unit="processes a side")


def pairs_needed(spread: float, change: float) -> int | None:
    """Return how many pairs find a change of the logarithm with 80% power, where pairs differ by `spread`."""
    return PAIRS.plan(spread, change, 0.0, more_than=1).number


def share_interval(count: int, total: int) -> tuple[float, float]:
    """Return the 95% interval of a share of which `count` of `total` were seen (Clopper and Pearson, 1934)."""
    from scipy.special import betaincinv

    tail = (1 - CONFIDENCE) / 2
    low = betaincinv(count, total - count + 1, tail) if count else 0.0
    high = betaincinv(count + 1, total - count, 1 - tail) if count < total else 1.0
    return float(low), float(high)


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean and the half-width `t(0.975, n - 1) * sd / sqrt(n)`, sd with ddof 1; 0 with one value."""
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Interval(mean, 0.0)
    half_width = _t_quantile(CONFIDENCE, len(values) - 1) * math.sqrt(_variance(values) / len(values))
    return Interval(mean, half_width)


def process_values(samples: Sequence[float], reps: int, unit: str) -> list[float]:
    """Return one value a process from its `reps` windows each, in order; see `process_estimator`.

    Raises `VelocityError` unless the samples are whole processes.
    """
    if not samples or len(samples) % reps:
        raise VelocityError(f"{len(samples)} samples are not whole processes of {reps} windows each")
    estimate = process_estimator(unit)
    return [float(estimate(samples[start : start + reps])) for start in range(0, len(samples), reps)]


def process_estimator(unit: str) -> Callable[[Sequence[float]], float]:
    """Return what stands for a process: its best window for rates by the wall clock, the mean for other units.

    Other users of a machine only ever slow the wall clock's windows. On a shared two-core machine, 16 processes of
    10 windows, the mean spread by 7.3%, the median by 8.8%, the best window by 1.6%; of env-steps a CPU-second the
    mean spread by 1.0%. On a quiet machine the best of 5 windows needs up to 1.6 times as many processes as the
    mean. The price: a change that only widens the windows of a process moves its best window a little too.
    """
    return max if unit == WALL_UNIT else statistics.fmean


def windows_spread(before: Sequence[float], after: Sequence[float]) -> float:
    """Return by how much a ratio of one window of each side spreads, as the standard deviation of its logarithm.

    What disturbs a machine within processes does so between them: see `ONE_PROCESS_LIMIT`.
    """
    return math.sqrt(math.fsum(_variance(_logarithms(side)) for side in (before, after) if len(side) > 1))


def pace_ratio(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], unit: str) -> float:
    """Return how many times as fast the machine was after as before, from the paces (`pace_s`) of the processes.

    A window's pace is the mean of the readings before and after it, since a pace can change in between, and a process's
    comes from its windows' as its rate does (`process_estimator`). The ratio is 1 where a side has none, and for units
    which are no rates.
    """
    if unit not in (WALL_UNIT, CPU_UNIT) or not before or not after:
        return 1.0
    estimate = process_estimator(unit)
    paces = [
        statistics.geometric_mean(
            estimate([1 / statistics.fmean(around) for around in itertools.pairwise(readings)]) for readings in side
        )
        for side in (before, after)
    ]
    return paces[1] / paces[0]


def is_other_pace(ratio: float) -> bool:
    """Whether two paces differ by more than their readings do."""
    return abs(math.log(ratio)) > PACE_WITHIN


def compare_processes(
    before: Sequence[float],
    after: Sequence[float],
    *,
    same_within: float = SAME_WITHIN,
    windows: float = 0.0,
    pace: float = 1.0,
) -> Comparison:
    """Compare two independent sets of processes, one value each; `same_within` is a share (0.02 is 2%).

    With one process a side, `windows` tells how noisy these were (see `windows_spread`).

    Where the machine itself had another `pace` (see `pace_ratio`), what is found must hold for the rates as they are
    and for rates held to the pace, at the far end of what its readings tell: how much of the work is the cores' is
    not known.
    """
    found = _compare_processes(before, after, same_within, windows)
    if not is_other_pace(pace):
        return found
    far = _far(pace)
    held = _compare_processes(before, [value / far for value in after], same_within, windows)
    return _agreed(found, held, f"the machine's own pace was {pace:.2f} times that of before")


def _far(pace: float) -> float:
    """Return the far end of what a pace's readings tell, 1 for one that is not another."""
    return pace * math.exp(math.copysign(PACE_WITHIN, math.log(pace))) if is_other_pace(pace) else 1.0


def _agreed(found: Comparison, held: Comparison, why: str) -> Comparison:
    """Return what was found if it holds at one pace, too."""
    if held.change == found.change:
        return found
    reason = f"inconclusive: {why}; needs both measured in turn"
    return dataclasses.replace(found, change="inconclusive", reason=reason, needed=None)


def _compare_processes(
    before: Sequence[float], after: Sequence[float], same_within: float, windows: float
) -> Comparison:
    """Compare two sets of processes of one machine that was the same throughout.

    Two errors are looked at: one that pools the spreads of both sides, exact where they are equal, and Welch's, for
    sides that differ. Neither alone keeps its level for all numbers and spreads, so a verdict must hold by both.
    Where few processes meet many, the few may be the noisy ones, and Welch's degrees of freedom, which are estimated
    too, are replaced by the fewest there can be. The 95% interval is the pooled one for equal numbers, which unequal
    spreads harm little, and otherwise the wider of both.
    """
    logs = _logarithms(before), _logarithms(after)
    difference = statistics.fmean(logs[1]) - statistics.fmean(logs[0])
    sizes = len(before), len(after)
    if min(sizes) == 1:
        return _one_process_a_side(difference, ASSUMED_SPREAD, PROCESSES, same_within, windows)
    variances = [max(_variance(side), ROUNDING_SPREAD**2) for side in logs]
    freedom = sum(sizes) - 2
    spread = math.sqrt(sum((n - 1) * variance for n, variance in zip(sizes, variances, strict=True)) / freedom)
    pooled = _Error(spread * math.sqrt(sum(1 / n for n in sizes)), freedom)
    parts = [variance / n for n, variance in zip(sizes, variances, strict=True)]
    welch_freedom = sum(parts) ** 2 / sum(part**2 / (n - 1) for n, part in zip(sizes, parts, strict=True))
    if max(sizes) > MOST_UNEQUAL * min(sizes):
        welch_freedom = min(sizes) - 1
    errors = [pooled, _Error(math.sqrt(sum(parts)), welch_freedom)]
    shown = [pooled] if sizes[0] == sizes[1] else errors
    half_width = max(error.half_width(CONFIDENCE) for error in shown)
    verdict_half_width = max(error.half_width(VERDICT_CONFIDENCE) for error in errors)
    plan = PROCESSES.plan(spread, difference, same_within, more_than=min(sizes))
    return _judge(difference, half_width, verdict_half_width, same_within, plan)


def compare_pairs(
    before: Sequence[float],
    after: Sequence[float],
    *,
    same_within: float = SAME_WITHIN,
    windows: float = 0.0,
    paces: Sequence[float] = (),
) -> Comparison:
    """Compare pairs of processes that ran one after the other, so that what disturbed both cancels.

    `windows` tells how noisy they were where there is one pair, as in `compare_processes`.

    `paces` has one of each pair's machine (see `pace_ratio`) where they are known; as in `compare_processes` they must
    not explain what is found.
    """
    found = _compare_pairs(before, after, same_within, windows)
    if not any(map(is_other_pace, paces)):
        return found
    after = [value / _far(pace) for value, pace in zip(after, paces, strict=True)]
    held = _compare_pairs(before, after, same_within, windows)
    return _agreed(found, held, "the machine's own pace was another within pairs")


def _compare_pairs(
    before: Sequence[float],
    after: Sequence[float],
    same_within: float,
    windows: float,
    paces: Sequence[float] = (),
) -> Comparison:
    """Compare pairs on a machine that was the same throughout, or by `paces` that are chance."""
    differences = _differences(before, after)
    n = len(differences)
    if n == 1:
        return _one_process_a_side(differences[0], ASSUMED_SPREAD * math.sqrt(2), PAIRS, same_within, windows)
    fit = _fit(differences, paces)
    spread = max(fit.spread, ROUNDING_SPREAD * math.sqrt(2))
    error = _Error(spread * math.sqrt(fit.leverage), fit.freedom)
    half_width, verdict_half_width = (error.half_width(level) for level in (CONFIDENCE, VERDICT_CONFIDENCE))
    plan = PAIRS.plan(spread, fit.difference, same_within, more_than=n)
    return _judge(fit.difference, half_width, verdict_half_width, same_within, plan)


def compare_in_turn(
    before: Sequence[float],
    after: Sequence[float],
    *,
    same_within: float = SAME_WITHIN,
    windows: float = 0.0,
    paces: Sequence[float] = (),
) -> Comparison:
    """Compare pairs that took turns on one machine, as `compare_pairs`; what its pace did is chance then.

    `paces` has the ratio of each pair's (see `pace_ratio`), where they are known. If some differ, a line through the
    pairs, of the rates' ratios over the paces' (logarithms, least squares), takes out what the readings tell of
    chance: where it passes equal paces is the ratio. Alternation makes paces alike on average, so the line moves no
    true ratio, however much or little the rates follow the readings; and whether there is a line depends on the
    paces alone. (Of a stack that heats the cores until they are slower between its windows, too, so much is hidden.)
    """
    found = _compare_pairs(before, after, same_within, windows, paces)
    return dataclasses.replace(found, at_equal_pace=_has_line(paces))


def spread_in_turn(before: Sequence[float], after: Sequence[float], paces: Sequence[float] = ()) -> float:
    """Return by how much the logarithms of pairs' ratios spread, as `compare_in_turn` takes them; of two or more."""
    return _fit(_differences(before, after), paces).spread


def _has_line(paces: Sequence[float]) -> bool:
    """Whether pairs are compared at equal pace, by their paces alone."""
    return len(paces) >= LEAST_FOR_LINE and len(set(paces)) > 1 and any(map(is_other_pace, paces))


def _fit(differences: Sequence[float], paces: Sequence[float]) -> _Fit:
    """Take the mean of two or more pairs, or, where paces make a line through them, where it passes equal paces."""
    n = len(differences)
    if not _has_line(paces):
        return _Fit(statistics.fmean(differences), statistics.stdev(differences), 1 / n, n - 1)
    logs = _logarithms(paces)
    slope, difference = statistics.linear_regression(logs, differences)
    residuals = (value - difference - slope * log for log, value in zip(logs, differences, strict=True))
    spread = math.sqrt(math.fsum(one**2 for one in residuals) / (n - 2))
    far = statistics.fmean(logs) ** 2 / (_variance(logs) * (n - 1))
    return _Fit(difference, spread, 1 / n + far, n - 2)


def _judge(
    difference: float, half_width: float, verdict_half_width: float, same_within: float, plan: _Plan
) -> Comparison:
    ratio, low, high = (math.exp(value) for value in (difference, difference - half_width, difference + half_width))
    if abs(difference) > verdict_half_width:
        level = f"{VERDICT_CONFIDENCE:.1%} interval"
        ends = math.exp(difference - verdict_half_width), math.exp(difference + verdict_half_width)
        change: Change = "more" if difference > 0 else "less"
        return Comparison(ratio, low, high, change, f"the {level} of the ratio is {ends[0]:.3f} to {ends[1]:.3f}")
    bound = max(1 - low, high - 1)
    if bound <= same_within:
        return Comparison(ratio, low, high, "same", f"same within {math.ceil(bound * 1000) / 10:.1f}%")
    return Comparison(ratio, low, high, "inconclusive", f"inconclusive: needs {plan}", plan.number)


def _one_process_a_side(
    difference: float, spread: float, design: _Design, same_within: float, windows: float
) -> Comparison:
    """A verdict only beyond what the worst spread between processes and windows explains; see `ONE_PROCESS_LIMIT`."""
    ratio = math.exp(difference)
    quantile = statistics.NormalDist().inv_cdf((1 + VERDICT_CONFIDENCE) / 2)
    explained = math.hypot(ONE_PROCESS_LIMIT, quantile * windows)
    limit = f"with one process a side only a change beyond x{math.exp(explained):.2f} counts"
    if abs(difference) > explained:
        return Comparison(ratio, None, None, "more" if difference > 0 else "less", limit)
    plan = design.plan(spread, difference, same_within, more_than=1)
    return Comparison(ratio, None, None, "inconclusive", f"inconclusive: {limit}; needs {plan}", plan.number)


def _differences(before: Sequence[float], after: Sequence[float]) -> list[float]:
    """Return the logarithms of the pairs' ratios."""
    if len(before) != len(after):
        raise VelocityError(f"{len(before)} values before and {len(after)} after are not pairs")
    return [new - old for old, new in zip(_logarithms(before), _logarithms(after), strict=True)]


def _logarithms(values: Sequence[float]) -> list[float]:
    if not values:
        raise VelocityError("nothing measured: there is no value to compare")
    if not all(value > 0 and math.isfinite(value) for value in values):
        raise VelocityError(f"rates must be positive and finite to be compared: {list(values)}")
    return [math.log(value) for value in values]


def _variance(values: Sequence[float]) -> float:
    """With ddof 1. The standard library's is exact, by fractions, and so slow that a site of 70,000 cells notices."""
    mean = statistics.fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


@functools.lru_cache(maxsize=4096)  # a site compares tens of thousands of cells that have the same few sizes
def _t_quantile(confidence: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))
