"""Types of command line options, and their values in words."""

from __future__ import annotations

import argparse
import re

PERCENT = 100
MINUTE_S, HOUR_S = 60, 3600


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


def duration(text: str) -> float:
    """Return a duration such as 9m, 90s or 1h30m in seconds."""
    parts = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text)
    hours, minutes, rest = (int(number or 0) for number in parts.groups()) if parts else (0, 0, 0)
    seconds = hours * HOUR_S + minutes * MINUTE_S + rest
    if not seconds:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: write 9m, 90s or 1h30m")
    return float(seconds)


def in_words(seconds: float) -> str:
    """Write seconds as `duration` reads them, in two units at most: 45s, 9m, 2h5m."""
    hours, rest = divmod(round(seconds), HOUR_S)
    minutes, rest = divmod(rest, MINUTE_S)
    parts = ((hours, "h"), (minutes, "m"), (0 if hours else rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def envs_in_words(num_envs: int) -> str:
    """Write an env count: 1 env, 8 envs."""
    return f"{num_envs} env{'s' * (num_envs != 1)}"
