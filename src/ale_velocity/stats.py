"""Intervals."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95


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


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean and the half-width `t(0.975, n - 1) * sd / sqrt(n)`, sd with ddof 1; 0 with one value."""
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Interval(mean, 0.0)
    from scipy.stats import t

    quantile = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return Interval(mean, quantile * statistics.stdev(values) / math.sqrt(len(values)))
