"""Levels and gaps of a series of releases."""

from __future__ import annotations

import numpy as np
import pytest
from asv import step_detect

from ale_velocity.asv_plugin import series
from ale_velocity.asv_plugin.regressions import losses


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([100], [(0, 1, 100)]),
        ([10000, 15000], [(0, 1, 10000), (1, 2, 15000)]),
        ([10, 20, 15], [(0, 1, 10), (1, 2, 20), (2, 3, 15)]),
        ([20, 10, 10, 20], [(0, 1, 20), (1, 3, 10), (3, 4, 20)]),
        ([100, 101, None, 99, float("nan"), 70, 71], [(0, 4, 100), (5, 7, 70.5)]),
        ([None, None], []),
        ([100, 103, 98, 101, 99, 102, 97, 100], [(0, 8, 100)]),
    ],
)
def test_levels_of_short_series(values, expected):
    """Clear steps are steps, noise is none, gaps belong to no level."""
    assert [level[:3] for level in series.levels(values)] == expected


def test_graph_steps_are_in_revisions():
    """The right end is the revision after the last, as in asv's."""
    data = [(14, 100, None), (15, 100, None), (20, None, None), (22, 50, None)]
    assert [step[:3] for step in series.graph_steps(data)] == [(14, 16, 100), (22, 23, 50)]


def test_stock_asv_misses_a_loss_that_recovered():
    """The reason for the grid of penalties."""
    assert len(step_detect.detect_steps([20, 10, 10, 20])) == 1


def test_series_that_reach_zero_are_asvs():
    """A logarithm has no zero."""
    assert series.levels([0, 0, 5, 5]) == step_detect.detect_steps([0, 0, 5, 5])


@pytest.mark.parametrize("releases", [6, 10, 30])
def test_noise_is_seldom_a_loss_and_a_loss_is_found(releases):
    """Seeded simulation: 5% noise gives a loss in at most 2% of series; 2% noise hides 10% in at most 15%."""
    noise = np.random.default_rng(releases)
    trials = 200

    def found(spread, factor):
        values = 10_000 * noise.normal(1, spread, releases)
        values[releases // 2 :] *= factor
        return losses(series.levels(values.tolist()), 0.05, higher=True)

    assert sum(bool(found(0.05, 1.0)) for _ in range(trials)) <= 0.02 * trials
    right = [[loss.first_bad for loss in found(0.02, 0.9)] == [releases // 2] for _ in range(trials)]
    assert sum(right) >= 0.85 * trials


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None, 3], [1, 2, 3]),
        ([None, 2, None, None], [2, 2, 2, 2]),
        ([None, None], [None, None]),
        ([1, float("nan"), float("nan"), 4], [1, 2, 3, 4]),
    ],
)
def test_gaps_are_filled(values, expected):
    """Between values by a line, at the ends by the nearest."""
    assert series.filled(values) == expected
