"""A series of releases: where its level changes, and what stands in its gaps.

asv fits a piecewise constant function, and chooses the penalty of a step by a search that is meant for hundreds of
commits. In a series as short as a timeline's it misses clear steps: 20, 10, 10, 20 is one level to asv 0.6.6.
Here asv's solver is given a grid of penalties, on the logarithms, and the best of its answers is taken.
"""

from __future__ import annotations

import itertools
import math
import statistics
from typing import TYPE_CHECKING

from asv import step_detect, util

if TYPE_CHECKING:
    from collections.abc import Sequence

# Chosen by simulation (tests/test_series.py keeps a small one): of constant series of 6 to 30 releases with 5% noise,
# at most 1% show a loss of more than 5%; a loss of 10% half way through 10 releases with 2% noise is found in 97%.
STEP_PENALTY = 3  # times log(n) / n for each level, as in the Bayesian information criterion
NOISE_FLOOR = 0.005  # deviations of less than 0.5% are not worth a step
PENALTIES = tuple(2.0**-power for power in range(12))  # of the deviation around one level

# asv's: first index or revision, the one after the last, median, minimum, mean deviation.
Level = tuple[int, int, float, float, float]


def graph_steps(data: Sequence[tuple[int, float | None, float | None]], reraise: bool = True) -> list[Level]:  # noqa: ARG001
    """Return the levels of a graph's (revision, value, weight), as asv's `_compute_graph_steps`, which this replaces.

    asv calls it in worker processes, which import it by this name. Each release counts the same: asv's weights are of
    windows, and say nothing about processes.
    """
    revisions = [revision for revision, _, _ in data]
    values = [value for _, value, _ in data]
    return [
        (revisions[left], revisions[right - 1] + 1, middle, lowest, deviation)
        for left, right, middle, lowest, deviation in levels(values)
    ]


def levels(values: Sequence[float | None]) -> list[Level]:
    """Return the levels of a series in which None and NaN are gaps; asv's own search serves series that reach zero."""
    present = _present(values)
    if not present or min(value for _, value in present) <= 0:
        return step_detect.detect_steps(values)
    edges = _edges([math.log(value) for _, value in present])
    return [_level(present[left:right]) for left, right in itertools.pairwise(edges)]


def filled(values: Sequence[float | None]) -> list[float | None]:
    """Return one series of the overview with its gaps filled; a series without any value stays as it is.

    asv's overview averages all series of a benchmark, and jumps where a gap takes one out of the average. A gap is
    filled between two values by a straight line, at an end by the nearest value.
    """
    known = _present(values)
    result = list(values)
    if not known:
        return result
    (first, first_value), (last, last_value) = known[0], known[-1]
    result[:first] = [first_value] * first
    result[last + 1 :] = [last_value] * (len(values) - last - 1)
    for (left, left_value), (right, right_value) in itertools.pairwise(known):
        for index in range(left + 1, right):
            share = (index - left) / (right - left)
            result[index] = left_value * (1 - share) + right_value * share
    return result


def _present(values: Sequence[float | None]) -> list[tuple[int, float]]:
    return [(index, value) for index, value in enumerate(values) if value is not None and not util.is_na(value)]


def _edges(logs: list[float]) -> tuple[int, ...]:
    """Return where levels begin, 0 first, and the length of the series at the end."""
    weights = [1.0] * len(logs)
    middle = statistics.median(logs)
    one_level = sum(abs(value - middle) for value in logs) or 1.0
    answers = {}
    for penalty in PENALTIES:
        right, _, deviations = step_detect.solve_potts_approx(logs, weights, gamma=penalty * one_level)
        answers[(0, *right)] = sum(deviations)

    def cost(edges: tuple[int, ...]) -> float:
        penalty = STEP_PENALTY * math.log(len(logs)) / len(logs)
        return penalty * len(edges) + math.log(len(logs) * NOISE_FLOOR + answers[edges])

    return min(answers, key=cost)


def _level(points: Sequence[tuple[int, float]]) -> Level:
    values = [value for _, value in points]
    middle = statistics.median(values)
    deviation = statistics.fmean(abs(value - middle) for value in values)
    return points[0][0], points[-1][0] + 1, middle, min(values), deviation
