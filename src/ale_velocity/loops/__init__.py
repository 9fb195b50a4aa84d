"""How actions reach the emulator and observations come back. All loops have one interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ale_velocity.loops.send_recv import SendRecvLoop
from ale_velocity.loops.step import StepLoop

if TYPE_CHECKING:
    from ale_velocity.agents import Agent


class Loop(Protocol):
    """A loop is reset when made; `run` then continues where the last call ended."""

    observations: Any
    """The newest observations, on the agent's device."""

    def __init__(self, envs: Any, agent: Agent, seed: int) -> None: ...

    def run(self, num_iterations: int) -> int:
        """Run iterations, counted from 0 for the agent's schedule, and return the rows received."""

    def close(self) -> None:
        """Leave the emulator idle."""


LOOPS: dict[str, type[Loop]] = {"step": StepLoop, "send_recv": SendRecvLoop}
