"""Natural order: 2.4.1 before 2.10.0, 8 envs before 16."""

from __future__ import annotations

import re


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key in which runs of digits count as numbers, and numbers come before words."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", text) if part)
