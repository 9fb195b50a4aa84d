"""Which way a unit is better, and what that makes of a change."""

from __future__ import annotations

from ale_velocity.errors import VelocityError

HIGHER_IS_BETTER = {
    "env-steps/s": True,
    "env-steps/CPU-s": True,
    "percent of ceiling": True,
    "microseconds/step": False,
    "seconds": False,
    "bytes": False,
}


def higher_is_better(unit: str) -> bool:
    """Return the direction of a unit; raise `VelocityError` for one that nobody decided on."""
    if unit not in HIGHER_IS_BETTER:
        raise VelocityError(f"whether more {unit!r} is better is not known: add it to ale_velocity.units")
    return HIGHER_IS_BETTER[unit]


def direction(unit: str) -> str:
    """Return the direction in words, for axes and lists."""
    return "higher is better" if higher_is_better(unit) else "lower is better"
