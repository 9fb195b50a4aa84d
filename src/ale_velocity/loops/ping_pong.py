"""Double buffering with two vector envs that hold half of the envs each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ale_velocity.agents import Agent
    from ale_velocity.checked import CheckedEnvs


class _Half:
    """One of the two vector envs, with the observations and actions that its envs are stepping from."""

    def __init__(self, envs: CheckedEnvs, agent: Agent, seed: int, first_id: int) -> None:
        self.envs = envs
        self.env_ids = np.arange(first_id, first_id + envs.num_envs)
        # Envs are seeded one after the other: the second half goes on where the first ended.
        observations, _ = envs.reset(seed=seed + first_id)
        self.observations = agent.to_device(observations)
        self.actions = agent.act(self.observations)
        envs.send(agent.to_host(self.actions))


class PingPongLoop:
    """Receive from one half and answer it, learn while the emulator steps the other half, change sides.

    The agent's schedule counts rounds of both halves, so that a loop has as many updates an env-step as any other.
    """

    layout = "two_envs"
    batches = 2

    def __init__(self, envs: Any, agent: Agent, seed: int) -> None:
        self.agent = agent
        first, second = envs.halves
        self.halves = (_Half(first, agent, seed, 0), _Half(second, agent, seed, first.num_envs))
        self.observations = self.halves[1].observations

    def run(self, num_iterations: int) -> int:
        """Run iterations of half the envs each, an even number, and return the rows received."""
        agent = self.agent
        num_rows = 0
        for iteration in range(num_iterations):
            half = self.halves[iteration % 2]
            received, rewards, terminated, _, _ = half.envs.recv()
            next_observations = agent.to_device(received)
            next_actions = agent.act(next_observations)
            half.envs.send(agent.to_host(next_actions))
            agent.store(half.observations, half.actions, rewards, terminated, next_observations, env_ids=half.env_ids)
            if iteration % 2 == 1:
                agent.learn(iteration // 2)
            half.observations, half.actions = next_observations, next_actions
            num_rows += len(rewards)
        self.observations = self.halves[1].observations
        return num_rows

    def close(self) -> None:
        """Receive what was sent last."""
        for half in self.halves:
            half.envs.recv()
