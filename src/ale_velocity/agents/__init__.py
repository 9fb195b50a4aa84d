"""What is learnt between emulator calls. A loop drives any `Agent`."""

from __future__ import annotations

from typing import Any, Protocol

AGENTS = ("dqn", "dqn_fixed_ratio", "ppo", "emulator")
LEARNERS = ("eager", "graphed")
GRAPHED_TORCH_THREADS = 1  # more would fight the emulator's threads: up to 3 times slower (workload.md)


class Agent(Protocol):
    """What a loop needs from an agent; device arrays are opaque to the loop.

    `emulator` is the agent that learns nothing: with it a loop measures the emulator alone.
    """

    def to_device(self, observations: Any) -> Any:
        """Bring host observations, uint8 `(rows, 4, 84, 84)`, to where the agent computes."""

    def act(self, observations: Any) -> Any:
        """Return one action a row for device observations, on the device."""

    def to_host(self, values: Any) -> Any:
        """Bring device values to the host as a numpy array, waiting for them."""

    def exchange(self, env_ids: Any, observations: Any, actions: Any) -> tuple[Any, Any]:
        """Keep the newest observations and actions of some envs; return those they replace.

        A loop whose batches hold any envs in any order pairs its transitions by this.
        """

    def store(
        self,
        observations: Any,
        actions: Any,
        rewards: Any,
        terminated: Any,
        next_observations: Any,
        *,
        env_ids: Any = None,
    ) -> None:
        """Remember transitions: device observations and actions, host rewards and terminations.

        `env_ids` names the env of each row, on the host; without it the rows are all envs in order.
        """

    def learn(self, iteration: int) -> None:
        """Update where the agent's schedule has one after round `iteration`, counted from 0 in each window."""

    def drain(self) -> None:
        """Wait until the device has done everything asked of it."""

    @property
    def num_updates(self) -> int | None:
        """Updates so far; None for an agent that never learns."""

    @property
    def updates_per_env_step(self) -> float | None:
        """The replay ratio by the agent's schedule; None for an agent that never learns."""

    @property
    def rollout(self) -> int:
        """Rounds between updates for an agent that learns from whole rollouts; 1 for others."""

    @property
    def num_compiled(self) -> int:
        """Graphs compiled so far in this process: a window during which it grows is refused."""

    def check(self) -> None:
        """Raise `VelocityError` unless the agent did its work: losses finite, weights changed, code compiled."""

    def facts(self) -> dict[str, Any]:
        """Return what a result must say about how the agent ran, as JSON values."""


def make_agent(
    name: str,
    *,
    num_envs: int,
    num_actions: int,
    device: str,
    num_rows: int | None = None,
    learner: str = "eager",
    torch_threads: int | None = None,
    train_freq: int = 4,
    batch_size: int = 32,
    buffer_cap: int = 10_000,
) -> Agent:
    """Return the agent called `name` (see `AGENTS`) for batches of `num_rows` of the envs, all unless given.

    torch is imported only if that agent needs it. The graphed learner is n/a without CUDA.
    """
    num_rows = num_rows or num_envs
    if name == "emulator":
        from ale_velocity.agents.emulator import FixedActions

        return FixedActions(num_rows, num_actions)
    from ale_velocity.agents import dqn, ppo
    from ale_velocity.agents.torch_device import prepare_torch, require_cuda

    if learner == "graphed":
        require_cuda(device)
        torch_threads = torch_threads or GRAPHED_TORCH_THREADS
    torch_device = prepare_torch(device, torch_threads)
    dqn_class, ppo_class = dqn.DqnAgent, ppo.PpoAgent
    if learner == "graphed":
        from ale_velocity.agents import graphed

        dqn_class, ppo_class = graphed.GraphedDqnAgent, graphed.GraphedPpoAgent
    if name == "ppo":
        return ppo_class(num_actions, torch_device, num_envs=num_envs, num_rows=num_rows)
    schedule = dqn.FixedRatio(num_envs) if name == "dqn_fixed_ratio" else dqn.EveryRounds(train_freq, num_envs)
    return dqn_class(
        num_actions,
        torch_device,
        num_envs=num_envs,
        num_rows=num_rows,
        schedule=schedule,
        batch_size=batch_size,
        buffer_cap=buffer_cap,
    )
