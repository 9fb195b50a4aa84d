"""The environment variables that choose what the benchmarks measure, each checked before anything runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ale_velocity.errors import VelocityError
from ale_velocity.measure import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "ALE_VELOCITY_"
DEVICES = ("auto", "cpu", "cuda")
# Read elsewhere: by the plugin (MACHINE), by cells that keep a record (RECORDS, BENCHMARK) or share a run (COMMAND).
OTHER_VARIABLES = {"MACHINE", "RECORDS", "BENCHMARK", "COMMAND"}


@dataclass(frozen=True)
class Settings:
    """What a result depends on besides its stack and its parameters.

    `torch_threads` is None where torch keeps its own default.
    """

    protocol: str = "standard"
    device: str = "auto"
    game: str = "pong"
    torch_threads: int | None = None

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read `ALE_VELOCITY_*`; raise `VelocityError` naming a variable or a value that is not known."""
        names = {"PROTOCOL", "DEVICE", "GAME", "TORCH_THREADS"}
        given = {key.removeprefix(PREFIX): value for key, value in environ.items() if key.startswith(PREFIX)}
        if unknown := sorted(given.keys() - names - OTHER_VARIABLES):
            known = ", ".join(PREFIX + name for name in sorted(names | OTHER_VARIABLES))
            raise VelocityError(f"unknown environment variable {PREFIX}{unknown[0]} (known: {known})")
        return cls(
            protocol=_one_of("PROTOCOL", given.get("PROTOCOL", cls.protocol), tuple(PROTOCOLS)),
            device=_one_of("DEVICE", given.get("DEVICE", cls.device), DEVICES),
            game=given.get("GAME", cls.game),
            torch_threads=_threads(given.get("TORCH_THREADS", "default")),
        )


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise VelocityError(f"{PREFIX}{name}={value!r} is not known: use {', '.join(allowed)}")
    return value


def _threads(value: str) -> int | None:
    if value == "default":
        return None
    if not value.isascii() or not value.isdigit() or int(value) == 0:
        raise VelocityError(f"{PREFIX}TORCH_THREADS={value!r} is not known: use default, or a positive whole number")
    return int(value)
