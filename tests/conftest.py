"""Where the checkout is, and an environment without the caller's own settings."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell makes its background jobs ignore Ctrl-C, and their children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def root():
    """Return the top of the checkout."""
    return ROOT


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    """A variable that the caller exported must not change what a test sees."""
    for name in list(os.environ):
        if name.startswith("ALE_VELOCITY_"):
            monkeypatch.delenv(name)
