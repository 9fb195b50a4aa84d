"""How fast this machine's cores run: the CPU time that a fixed piece of work takes.

Clock frequency, and what neighbours do to caches and sibling threads, change it: on shared machines by half and more,
from one minute to the next, without a trace in load or stolen time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ITERATIONS = 200_000  # of pure Python: some milliseconds
READINGS = 3  # of which the quickest counts: an interrupt only ever adds

PROBE_SLICES = 10
PROBE_TRIES = 3
STEADY_WITHIN = 0.05


def work() -> None:
    """Do the fixed work."""
    sum(range(ITERATIONS))


def read(work: Callable[[], Any] = work, clock: Callable[[], float] = time.thread_time) -> float:
    """Return the CPU seconds that the work takes now, to 4 significant digits."""
    return float(f"{min(_timed(work, clock) for _ in range(READINGS)):.4g}")


def probe(work: Callable[[], Any] = work, clock: Callable[[], float] = time.thread_time) -> dict[str, Any]:
    """Do the work in slices: `drift` is slowest over fastest, less one.

    An unsteady machine is tried again, a few times; the last try is kept and says `steady: False`.
    """
    for tries in range(1, PROBE_TRIES + 1):
        slices = [_timed(work, clock) for _ in range(PROBE_SLICES)]
        drift = round(max(slices) / min(slices) - 1, 3)
        if drift <= STEADY_WITHIN or tries == PROBE_TRIES:
            break
    return {"drift": drift, "tries": tries, "steady": drift <= STEADY_WITHIN}


def _timed(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    started = clock()
    work()
    return clock() - started
