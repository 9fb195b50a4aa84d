"""asv as a child process that ends in time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from ale_velocity.interrupt import held_back

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ASV = (sys.executable, "-m", "asv")
# What asv gets to save and to end its cell, before a stronger signal.
GRACE_S = 10


def run(arguments: Sequence[str], seconds: float | None, say: Callable[[str], None]) -> int | None:
    """Run asv and return its exit code, or None if it was interrupted after `seconds`.

    Its output is passed on, but for the rows of its tables without a value: asv prints a row for every cell that a
    benchmark has. An exception while it runs, Ctrl-C above all, interrupts it first.
    """
    timed_out = threading.Event()
    with held_back() as signals:
        process = subprocess.Popen(
            [*ASV, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # so that Ctrl-C reaches it once, from here
        )
    with process:

        def interrupt() -> None:
            timed_out.set()
            _stop(process)

        timer = threading.Timer(seconds, interrupt) if seconds is not None else None
        if timer:
            timer.start()
        try:
            for signum in signals:
                signal.raise_signal(signum)
            for line in process.stdout or ():
                if not (timed_out.is_set() or line.rstrip().endswith("n/a")):
                    say(line.rstrip())
            code = process.wait()
        except BaseException:
            _stop(process)
            raise
        finally:
            if timer:
                timer.cancel()
                timer.join()
    return None if timed_out.is_set() else code


def _stop(process: subprocess.Popen[str]) -> None:
    """Interrupt asv as Ctrl-C does; if it does not end it gets stronger signals, the last at once on another Ctrl-C."""
    try:
        for signum in (signal.SIGINT, signal.SIGTERM):
            if process.poll() is not None:
                return
            os.killpg(process.pid, signum)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
                return
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
