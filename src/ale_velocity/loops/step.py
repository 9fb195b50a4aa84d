"""The blocking loop: the emulator waits for the learner, the learner for the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ale_velocity.agents import Agent


class StepLoop:
    """Infer, `envs.step(actions)`, store, learn."""

    layout = "one_env"
    batches = 1

    def __init__(self, envs: Any, agent: Agent, seed: int) -> None:
        self.envs = envs
        self.agent = agent
        observations, _ = envs.reset(seed=seed)
        self.observations = agent.to_device(observations)

    def run(self, num_iterations: int) -> int:
        """Run iterations and return the rows received."""
        envs, agent, observations = self.envs, self.agent, self.observations
        num_rows = 0
        for iteration in range(num_iterations):
            actions = agent.act(observations)
            received, rewards, terminated, _, _ = envs.step(agent.to_host(actions))
            next_observations = agent.to_device(received)
            agent.store(observations, actions, rewards, terminated, next_observations)
            agent.learn(iteration)
            observations = next_observations
            num_rows += len(rewards)
        self.observations = observations
        return num_rows

    def close(self) -> None:
        """Nothing is outstanding after a step."""
