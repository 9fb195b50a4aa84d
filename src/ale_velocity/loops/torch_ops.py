"""The async loop through torch custom ops, which a compiled policy can hold inside its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ale_velocity.agents import Agent


class TorchOpsLoop:
    """As the `send_recv` loop, with tensors both ways."""

    layout = "one_env"
    batches = 1

    def __init__(self, envs: Any, agent: Agent, seed: int) -> None:
        import torch

        from ale_velocity.loops.torch_registration import torch_ops

        self.agent = agent
        self.ops = torch_ops(envs)
        self.to_tensor = torch.from_numpy
        observations, _ = envs.reset(seed=seed)
        self.observations = agent.to_device(observations)
        self.actions = agent.act(self.observations)
        self.ops.send(self.ops.handle_id, self.to_tensor(agent.to_host(self.actions)))

    def run(self, num_iterations: int) -> int:
        """Run iterations and return the rows received."""
        ops, agent, observations, actions = self.ops, self.agent, self.observations, self.actions
        num_rows = 0
        for iteration in range(num_iterations):
            received, rewards, terminated, _, _ = ops.recv(ops.handle_id)
            next_observations = agent.to_device(received)
            next_actions = agent.act(next_observations)
            ops.send(ops.handle_id, self.to_tensor(agent.to_host(next_actions)))
            agent.store(observations, actions, rewards, terminated, next_observations)
            agent.learn(iteration)
            observations, actions = next_observations, next_actions
            num_rows += len(rewards)
        self.observations, self.actions = observations, actions
        return num_rows

    def close(self) -> None:
        """Receive what was sent last, and forget the handle."""
        self.ops.recv(self.ops.handle_id)
        self.ops.unregister()
