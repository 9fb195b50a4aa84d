"""How long a run will take: by runs like it on this machine, else by rule of thumb."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ale_velocity.sweep.plan import Kind

# Rules of thumb in seconds, measured on two shared cores and rounded up.
CELL_S = {"quick": 20, "standard": 60, "reference": 120}  # a run of a benchmark that never ran here, by protocol
NOT_AVAILABLE_S = 3  # a run that is n/a: asv starts in a second, and the cell skips
SIBLING_S = 1  # a cell that takes its value from the run of another
INSTALL_S = 10  # another release into an environment that exists
ENVIRONMENT_S = 60  # a new environment, its torch from disk


@dataclass(frozen=True)
class Observed:
    """What runs took: seconds of measured runs without and with an installation, and kinds that were n/a."""

    runs: list[tuple[Kind, float]]
    installing: list[tuple[Kind, float]]
    not_available: list[Kind]


class Estimates:
    """Seconds of runs and installations, from what was observed on this machine."""

    def __init__(self, protocol: str, observed: Observed) -> None:
        self._default_s = CELL_S[protocol]
        self._runs = observed.runs
        self._not_available = {(kind.benchmark, kind.loop) for kind in observed.not_available}
        installs = [max(seconds - self.run_s(kind), 0) for kind, seconds in observed.installing]
        self.install_s = statistics.median(installs) if installs else INSTALL_S

    def run_s(self, kind: Kind) -> float:
        """One run of a kind, without an installation.

        The median of the same kind; else of the benchmark's other loops with the count, else of its nearest count.
        """
        same = [(other, seconds) for other, seconds in self._runs if other.benchmark == kind.benchmark]
        of_loop = [(other, seconds) for other, seconds in same if other.loop == kind.loop]
        if not of_loop and (kind.benchmark, kind.loop) in self._not_available:
            return NOT_AVAILABLE_S + SIBLING_S * (len(kind.cells) - 1)
        for like in (of_loop, same):
            if exact := [seconds for other, seconds in like if other.num_envs == kind.num_envs]:
                return statistics.median(exact)
        if not same:
            return self._default_s
        nearest = min(_distance(other, kind) for other, _ in same)
        return statistics.median(seconds for other, seconds in same if _distance(other, kind) == nearest)


def _distance(kind: Kind, other: Kind) -> float:
    return abs(math.log2(kind.num_envs / other.num_envs))
