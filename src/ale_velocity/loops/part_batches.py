"""Batches of a part of one vector env's envs: some are answered while the others are emulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ale_velocity.errors import VelocityError

if TYPE_CHECKING:
    from ale_velocity.agents import Agent

MAX_FIRST_BATCHES = 1000  # an env whose reset did not return within so many batches of the others never will
PATIENCE = 64  # batches within which every env must have returned: queues are first in, first out


class HalfBatchLoop:
    """Double buffering: receive whichever half of the envs is ready first, answer it, learn while the other is stepped.

    A batch holds any envs in any order, so each row is paired with its env's previous observation and action
    by id. Actions go to the envs of the last batch: always one send before the next receive. The agent's
    schedule counts rounds of all batches, so that a loop has as many updates an env-step as any other.
    """

    layout = "one_env"
    batches = 2

    def __init__(self, envs: Any, agent: Agent, seed: int) -> None:
        self.envs = envs
        self.agent = agent
        received, info = envs.reset(seed=seed)
        for _ in range(MAX_FIRST_BATCHES):
            self.observations = agent.to_device(received)
            actions = agent.act(self.observations)
            envs.send(agent.to_host(actions))
            agent.exchange(info["env_id"], self.observations, actions)
            if envs.received.all():
                return
            received, _, _, _, info = envs.recv()
        missing = (envs.received == 0).nonzero()[0].tolist()
        raise VelocityError(f"envs {missing} did not return from their reset within {MAX_FIRST_BATCHES} batches")

    def run(self, num_iterations: int) -> int:
        """Run iterations of one batch each and return the rows received."""
        envs, agent = self.envs, self.agent
        received_before = envs.received.copy()
        num_rows = 0
        for iteration in range(num_iterations):
            received, rewards, terminated, _, info = envs.recv()
            next_observations = agent.to_device(received)
            next_actions = agent.act(next_observations)
            envs.send(agent.to_host(next_actions))
            env_ids = info["env_id"]
            observations, actions = agent.exchange(env_ids, next_observations, next_actions)
            agent.store(observations, actions, rewards, terminated, next_observations, env_ids=env_ids)
            number, batch = divmod(iteration, self.batches)
            if batch == self.batches - 1:
                agent.learn(number)
            num_rows += len(rewards)
            self.observations = next_observations
        if num_iterations >= PATIENCE:
            envs.check_all_returned(received_before)
        return num_rows

    def close(self) -> None:
        """Receive what was sent last."""
        for _ in range(self.batches):
            self.envs.recv()


class QuarterBatchLoop(HalfBatchLoop):
    """The same with quarters: an env waits for fewer others, and for a smaller batch's actions; there are more batches.

    What it gains where envs are few, and each batch's way to its actions and back is long beside an env's step.
    """

    batches = 4
