"""Signals that end a command early."""

import os
import signal

import pytest

from ale_velocity import interrupt


@pytest.fixture(params=interrupt.STOPPING)
def signum(request):
    """Each of them, as a shell leaves it to a program, and put back to what it was, which nohup may have changed."""
    before = signal.signal(request.param, signal.SIG_DFL)
    yield request.param
    signal.signal(request.param, before)


def test_each_is_taken_for_ctrl_c(signum):
    """And is what it was afterwards."""
    before = signal.getsignal(signum)
    with pytest.raises(KeyboardInterrupt), interrupt.like_ctrl_c():
        os.kill(os.getpid(), signum)
    assert signal.getsignal(signum) is before


def test_nohup_is_heeded_and_a_background_job_can_be_stopped(signum):
    """Both begin with the signal ignored: one by intent, the other because Ctrl-C is meant for the foreground."""
    signal.signal(signum, signal.SIG_IGN)
    stops = []
    try:
        with interrupt.like_ctrl_c():
            os.kill(os.getpid(), signum)
    except KeyboardInterrupt:
        stops.append(signum)
    assert stops == ([] if signum == signal.SIGHUP else [signum])


def test_held_back_signals_are_told(signum):
    """Nothing is interrupted meanwhile."""
    with interrupt.held_back() as came:
        os.kill(os.getpid(), signum)
    assert came == [signum]
