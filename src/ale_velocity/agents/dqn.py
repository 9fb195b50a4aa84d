"""DQN with the eager learner: frequent updates on small minibatches (the reference workload)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ale_velocity.agents.nature import FEATURES, nature_layers
from ale_velocity.agents.torch_agent import SEED, TorchAgent
from ale_velocity.envs import OBSERVATION_SHAPE

GAMMA = 0.99
LEARNING_RATE = 1e-4
ENV_STEPS_AN_UPDATE = 4  # of the fixed replay ratio: DQN's own, as published by Mnih et al. 2015


@dataclass(frozen=True)
class EveryRounds:
    """One update every `train_freq` rounds, so the replay ratio falls with the env count (the reference workload)."""

    train_freq: int
    num_envs: int

    def updates_due(self, iteration: int) -> int:
        """Updates to make after round `iteration`."""
        return int(iteration % self.train_freq == 0)

    @property
    def updates_per_env_step(self) -> float:
        """One every `train_freq` rounds of `num_envs` env-steps."""
        return 1 / (self.train_freq * self.num_envs)


@dataclass(frozen=True)
class FixedRatio:
    """One update every 4 env-steps, whatever the env count."""

    num_envs: int

    def updates_due(self, iteration: int) -> int:
        """Updates to make after round `iteration`."""
        before = iteration * self.num_envs // ENV_STEPS_AN_UPDATE
        return (iteration + 1) * self.num_envs // ENV_STEPS_AN_UPDATE - before

    @property
    def updates_per_env_step(self) -> float:
        """The ratio itself."""
        return 1 / ENV_STEPS_AN_UPDATE


class QNetwork(nn.Module):
    """The Nature CNN: uint8 observations `(rows, 4, 84, 84)` to values `(rows, num_actions)`."""

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*nature_layers(), nn.Linear(FEATURES, num_actions))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Scale pixels to [0, 1] and return the action values."""
        return self.layers(observations / 255)


class Replay:
    """A ring buffer of transitions on the device; adds whole batches, samples uniformly with replacement."""

    def __init__(self, capacity: int, device: torch.device) -> None:
        self.capacity = capacity
        self.observations = torch.empty((capacity, *OBSERVATION_SHAPE), dtype=torch.uint8, device=device)
        self.actions = torch.empty(capacity, dtype=torch.int64, device=device)
        self.rewards = torch.empty(capacity, dtype=torch.float32, device=device)
        self.dones = torch.empty(capacity, dtype=torch.float32, device=device)
        self.next_observations = torch.empty_like(self.observations)
        self.size = 0
        self._position = 0

    def add(self, *transitions: torch.Tensor) -> None:
        """Add rows of (observations, actions, rewards, dones, next observations), overwriting the oldest."""
        num_rows = len(transitions[0])
        before_end = min(num_rows, self.capacity - self._position)
        for column, rows in zip(self._columns(), transitions, strict=True):
            column[self._position : self._position + before_end] = rows[:before_end]
            if before_end < num_rows:
                column[: num_rows - before_end] = rows[before_end:]
        self._position = (self._position + num_rows) % self.capacity
        self.size = min(self.size + num_rows, self.capacity)

    def sample(self, batch_size: int) -> tuple[torch.Tensor, ...]:
        """Return `batch_size` rows of each column, drawn uniformly with replacement."""
        rows = torch.randint(self.size, (batch_size,), device=self.actions.device)
        return self.rows(rows)

    def rows(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return some rows of each column."""
        return tuple(column[rows] for column in self._columns())

    def _columns(self) -> tuple[torch.Tensor, ...]:
        return self.observations, self.actions, self.rewards, self.dones, self.next_observations


class DqnAgent(TorchAgent):
    """Greedy acting through torch.compile, eager updates when the schedule has them due.

    Constants not passed in are the reference experiment's: no exploration, so that throughput is not
    perturbed; the target network stays a copy of the initial weights.
    """

    def __init__(
        self,
        num_actions: int,
        device: torch.device,
        *,
        num_envs: int,
        num_rows: int,
        schedule: EveryRounds | FixedRatio,
        batch_size: int,
        buffer_cap: int,
    ) -> None:
        torch.manual_seed(SEED)
        super().__init__(QNetwork(num_actions), device, num_envs, num_rows)
        self.schedule = schedule
        self.batch_size = batch_size
        self.target = copy.deepcopy(self.network)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=LEARNING_RATE)
        self.replay = Replay(buffer_cap, device)
        self._policy = torch.compile(self.network, mode="reduce-overhead")

    def decide(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the greedy actions, int64 `(rows,)`."""
        return self.network(observations).argmax(dim=1)

    @torch.no_grad()
    def act(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the greedy actions, int64 `(rows,)`; cloned, since the next call overwrites a graph's output."""
        torch.compiler.cudagraph_mark_step_begin()
        return self._policy(observations).argmax(dim=1).clone()

    def exchange(
        self, env_ids: Any, observations: torch.Tensor, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keep the newest observations and actions of some envs; return those they replace."""
        previous_observations, previous_actions = self.swap_held(env_ids, observations, actions)
        return previous_observations, previous_actions

    def store(
        self,
        observations: torch.Tensor,
        actions: torch.Tensor,
        rewards: Any,
        terminated: Any,
        next_observations: torch.Tensor,
        *,
        env_ids: Any = None,  # noqa: ARG002 (a transition stands for itself)
    ) -> None:
        """Put a batch of transitions into the replay."""
        self.replay.add(observations, actions, *self.ends_to_device(rewards, terminated), next_observations)

    def learn(self, iteration: int) -> None:
        """Make the updates that are due, once the replay holds a minibatch."""
        if self.replay.size < self.batch_size:
            return
        for _ in range(self.schedule.updates_due(iteration)):
            self.last_loss = self.update(*self.replay.sample(self.batch_size))
            self.num_updates += 1

    def loss(
        self,
        observations: torch.Tensor,
        actions: torch.Tensor,
        rewards: torch.Tensor,
        dones: torch.Tensor,
        next_observations: torch.Tensor,
    ) -> torch.Tensor:
        """Return the smooth L1 loss of a minibatch against the target network's values."""
        with torch.no_grad():
            best_next = self.target(next_observations).max(dim=1).values
            targets = rewards + GAMMA * (1 - dones) * best_next
        values = self.network(observations).gather(1, actions.unsqueeze(1)).squeeze(1)
        return functional.smooth_l1_loss(values, targets)

    @property
    def updates_per_env_step(self) -> float:
        """The replay ratio by the schedule."""
        return self.schedule.updates_per_env_step

    def facts(self) -> dict[str, Any]:
        """Return device, threads and schedule of this agent."""
        return {**super().facts(), "batch_size": self.batch_size, "buffer_cap": self.replay.capacity}
