"""How actions reach the emulator and observations come back. All loops have one interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ale_velocity.loops.part_batches import HalfBatchLoop, QuarterBatchLoop
from ale_velocity.loops.ping_pong import PingPongLoop
from ale_velocity.loops.send_recv import SendRecvLoop
from ale_velocity.loops.step import StepLoop
from ale_velocity.loops.torch_ops import TorchOpsLoop

if TYPE_CHECKING:
    from ale_velocity.agents import Agent


class Loop(Protocol):
    """A loop is reset when made; `run` then continues where the last call ended."""

    layout: str
    """`one_env`, or `two_envs` that hold half of the envs each."""

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


# Both forms of double buffering are loops of their own; this one is meant where `double_buffer` is asked for. Half
# batches wait for whichever envs are ready, ping-pong for the slowest of each half. On an H200 with 16 cores, ale-py
# 0.12.1, graphed learner, env-steps/s in one run: 13,680 and 12,290 at 16 envs, 21,776 and 16,828 at 64. In ale-py
# 0.11.2 half batches can crash, without this project's code too: such a cell is failed, and `ping_pong` runs.
DOUBLE_BUFFER = HalfBatchLoop

LOOPS: dict[str, type[Loop]] = {
    "step": StepLoop,
    "send_recv": SendRecvLoop,
    "torch_ops": TorchOpsLoop,
    "double_buffer": DOUBLE_BUFFER,
    "half_batches": HalfBatchLoop,
    "quarter_batches": QuarterBatchLoop,
    "ping_pong": PingPongLoop,
}
