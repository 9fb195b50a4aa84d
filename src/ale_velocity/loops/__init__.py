"""How actions reach the emulator and observations come back. All loops have one interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ale_velocity.loops.half_batches import HalfBatchLoop
from ale_velocity.loops.ping_pong import PingPongLoop
from ale_velocity.loops.send_recv import SendRecvLoop
from ale_velocity.loops.step import StepLoop
from ale_velocity.loops.torch_ops import TorchOpsLoop

if TYPE_CHECKING:
    from ale_velocity.agents import Agent


class Loop(Protocol):
    """A loop is reset when made; `run` then continues where the last call ended."""

    layout: str
    """How its envs are opened: see `backends.open_envs`."""

    batches: int
    """Iterations of a round, in which every env advances once: an iteration receives `num_envs / batches` rows."""

    observations: Any
    """The newest observations, on the agent's device."""

    def __init__(self, envs: Any, agent: Agent, seed: int) -> None: ...

    def run(self, num_iterations: int) -> int:
        """Run iterations, whole rounds of them, and return the rows received.

        The agent learns once a round, told its number, counted from 0.
        """

    def close(self) -> None:
        """Leave the emulator idle."""


# Both forms of double buffering are loops of their own; this one is meant where `double_buffer` is asked for. On an
# H200 with 16 cores, ale-py 0.12.1, graphed learner, env-steps/s: ping-pong 14,022 and half batches 13,280 at 16 envs,
# 19,121 and 22,047 at 64. Half batches win on large counts, but can crash inside ale-py 0.11.2, without this project's
# code too: a history needs the form that every release runs.
DOUBLE_BUFFER = PingPongLoop

LOOPS: dict[str, type[Loop]] = {
    "step": StepLoop,
    "send_recv": SendRecvLoop,
    "torch_ops": TorchOpsLoop,
    "double_buffer": DOUBLE_BUFFER,
    "half_batches": HalfBatchLoop,
    "ping_pong": PingPongLoop,
}
