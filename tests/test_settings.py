"""Environment variables: known, or refused by name."""

from __future__ import annotations

import pytest

from ale_velocity.errors import VelocityError
from ale_velocity.settings import Settings


def test_defaults():
    """Nothing set is the standard protocol on whatever device there is."""
    assert Settings.from_environ({"PATH": "/bin"}) == Settings("standard", "auto", "pong", None)


def test_all_are_read():
    """Every variable reaches its field."""
    environ = {
        "ALE_VELOCITY_PROTOCOL": "quick",
        "ALE_VELOCITY_DEVICE": "cuda",
        "ALE_VELOCITY_GAME": "ms_pacman",
        "ALE_VELOCITY_TORCH_THREADS": "1",
        "ALE_VELOCITY_MACHINE": "lab-7",
    }
    assert Settings.from_environ(environ) == Settings("quick", "cuda", "ms_pacman", 1)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PROTOCOL", "fast", "PROTOCOL='fast' is not known: use reference, standard, quick"),
        ("DEVICE", "gpu", "DEVICE='gpu' is not known: use auto, cpu, cuda"),
        ("TORCH_THREADS", "0", "use default, or a positive whole number"),
        ("TORCH_THREADS", "many", "use default, or a positive whole number"),
        ("PROTOCOLL", "quick", "unknown environment variable ALE_VELOCITY_PROTOCOLL"),
    ],
)
def test_bad_values_are_named(name, value, message):
    """The message holds the variable, the value and what is allowed."""
    with pytest.raises(VelocityError, match=message):
        Settings.from_environ({f"ALE_VELOCITY_{name}": value})
