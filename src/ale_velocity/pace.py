"""How fast this machine's cores run: the CPU time that a fixed piece of work takes.

Clock frequency, and what neighbours do to caches and sibling threads, change it: on shared machines by half and more,
from one minute to the next, one core and not its neighbour, without a trace in load or stolen time.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ITERATIONS = 200_000  # of pure Python: some milliseconds
READINGS = 2  # a core, of which the quicker counts: an interrupt only ever adds
MOST_CORES = 8  # so many are read, evenly among all: some tens of milliseconds between windows at most

PROBE_SLICES = 10
PROBE_TRIES = 3
STEADY_WITHIN = 0.05


def work() -> None:
    """Do the fixed work."""
    sum(range(ITERATIONS))


def read(work: Callable[[], Any] = work, clock: Callable[[], float] = time.thread_time) -> float:
    """Return the CPU seconds that the work takes now, the mean over the usable cores."""
    return float(f"{statistics.fmean(of_each_core(work, clock)):.4g}")


def of_each_core(work: Callable[[], Any] = work, clock: Callable[[], float] = time.thread_time) -> list[float]:
    """Return the CPU seconds that the work takes now on each usable core, to 4 significant digits.

    Of more than `MOST_CORES` it takes some, evenly; where threads cannot be moved, the one where this thread is.
    """
    if not hasattr(os, "sched_setaffinity"):  # macOS, Windows
        return [_quickest(work, clock)]
    usable = os.sched_getaffinity(0)
    seconds = []
    try:
        for core in sorted(usable)[:: -(-len(usable) // MOST_CORES)]:
            with contextlib.suppress(OSError):  # a container may take a core away at any time
                os.sched_setaffinity(0, {core})
            seconds.append(_quickest(work, clock))
    finally:
        os.sched_setaffinity(0, usable)
    return seconds


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


def _quickest(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    return float(f"{min(_timed(work, clock) for _ in range(READINGS)):.4g}")


def _timed(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    started = clock()
    work()
    return clock() - started
