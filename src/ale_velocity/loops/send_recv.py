"""The async loop: the next actions are sent before storing and learning, so that the emulator runs meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ale_velocity.agents import Agent


class SendRecvLoop:
    """Receive, infer, `send` at once, then store and learn what was received.

    The first actions are the policy's answer to the reset observations, as in the blocking loop, so that both
    loops give the same transitions from one seed. With learning on, a policy acts here before the update that
    the blocking loop would have made first: it is one update behind.
    """

    layout = "one_env"
    batches = 1

    def __init__(self, envs: Any, agent: Agent, seed: int) -> None:
        self.envs = envs
        self.agent = agent
        observations, _ = envs.reset(seed=seed)
        self.observations = agent.to_device(observations)
        self.actions = agent.act(self.observations)
        envs.send(agent.to_host(self.actions))

    def run(self, num_iterations: int) -> int:
        """Run iterations and return the rows received."""
        envs, agent, observations, actions = self.envs, self.agent, self.observations, self.actions
        num_rows = 0
        for iteration in range(num_iterations):
            received, rewards, terminated, _, _ = envs.recv()
            next_observations = agent.to_device(received)
            next_actions = agent.act(next_observations)
            envs.send(agent.to_host(next_actions))
            agent.store(observations, actions, rewards, terminated, next_observations)
            agent.learn(iteration)
            observations, actions = next_observations, next_actions
            num_rows += len(rewards)
        self.observations, self.actions = observations, actions
        return num_rows

    def close(self) -> None:
        """Receive what was sent last."""
        self.envs.recv()
