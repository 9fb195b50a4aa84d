"""Types of command line options."""

from __future__ import annotations

import argparse

PERCENT = 100


def at_least_one(text: str) -> int:
    """Return a whole number of at least 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def share(text: str) -> float:
    """Return a percentage between 0 and 100 as a share."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < PERCENT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage between 0 and 100")
    return value / PERCENT
