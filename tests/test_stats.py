"""Intervals against scipy."""

from __future__ import annotations

import pytest
import scipy.stats

from ale_velocity.stats import mean_interval


def test_the_t_interval_is_scipys():
    """Mean and 95% half-width, for two and for five windows."""
    for values in ([101.0, 99.0], [4.0, 4.5, 3.9, 4.1, 4.4]):
        interval = mean_interval(values)
        low, high = scipy.stats.t.interval(
            0.95, len(values) - 1, loc=sum(values) / len(values), scale=scipy.stats.sem(values)
        )
        assert (interval.low, interval.high) == pytest.approx((low, high))


def test_one_window_has_no_width():
    """The half-width is 0 where there is no spread to estimate."""
    interval = mean_interval([7.0])
    assert (interval.mean, interval.half_width) == (7.0, 0.0)
