"""DQN with the eager learner: frequent updates on small minibatches (the reference workload)."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ale_velocity.agents import torch_device
from ale_velocity.errors import VelocityError

SEED = 1
OBSERVATION_SHAPE = (4, 84, 84)
GAMMA = 0.99
LEARNING_RATE = 1e-4


class QNetwork(nn.Module):
    """The Nature CNN: uint8 observations `(rows, 4, 84, 84)` to values `(rows, num_actions)`."""

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(4, 32, kernel_size=8, stride=4),
            nn.ReLU(),
            nn.Conv2d(32, 64, kernel_size=4, stride=2),
            nn.ReLU(),
            nn.Conv2d(64, 64, kernel_size=3, stride=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(3136, 512),
            nn.ReLU(),
            nn.Linear(512, num_actions),
        )

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
        return tuple(column[rows] for column in self._columns())

    def _columns(self) -> tuple[torch.Tensor, ...]:
        return self.observations, self.actions, self.rewards, self.dones, self.next_observations


class DqnAgent:
    """Greedy acting through torch.compile, an eager update every `train_freq` iterations.

    Constants not passed in are the reference experiment's: no exploration, so that throughput is not
    perturbed; the target network stays a copy of the initial weights.
    """

    def __init__(
        self, num_actions: int, device: torch.device, *, train_freq: int, batch_size: int, buffer_cap: int
    ) -> None:
        torch.manual_seed(SEED)
        self.device = device
        self.train_freq = train_freq
        self.batch_size = batch_size
        self.network = QNetwork(num_actions).to(device)
        self.target = copy.deepcopy(self.network)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=LEARNING_RATE)
        self.replay = Replay(buffer_cap, device)
        self.num_updates = 0
        self.last_loss: torch.Tensor | None = None
        self._policy = torch.compile(self.network, mode="reduce-overhead")

    def to_device(self, observations: Any) -> torch.Tensor:
        """Return host observations as a tensor on the device."""
        return torch.from_numpy(observations).to(self.device)

    @torch.no_grad()
    def act(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the greedy actions, int64 `(rows,)`; cloned, since the next call overwrites a graph's output."""
        torch.compiler.cudagraph_mark_step_begin()
        return self._policy(observations).argmax(dim=1).clone()

    def to_host(self, values: torch.Tensor) -> Any:
        """Return a tensor as a numpy array, which waits for it."""
        return values.cpu().numpy()

    def store(
        self, observations: torch.Tensor, actions: torch.Tensor, rewards: Any, terminated: Any, next_observations: Any
    ) -> None:
        """Put a batch of transitions into the replay."""
        self.replay.add(
            observations,
            actions,
            torch.from_numpy(rewards).to(self.device),
            torch.from_numpy(terminated).to(self.device),
            next_observations,
        )

    def learn(self, iteration: int) -> None:
        """Update every `train_freq` iterations, once the replay holds a minibatch."""
        if iteration % self.train_freq == 0 and self.replay.size >= self.batch_size:
            self.last_loss = self.update(*self.replay.sample(self.batch_size))
            self.num_updates += 1

    def update(
        self,
        observations: torch.Tensor,
        actions: torch.Tensor,
        rewards: torch.Tensor,
        dones: torch.Tensor,
        next_observations: torch.Tensor,
    ) -> torch.Tensor:
        """Take one Adam step on a minibatch and return its loss, still on the device."""
        with torch.no_grad():
            best_next = self.target(next_observations).max(dim=1).values
            targets = rewards + GAMMA * (1 - dones) * best_next
        values = self.network(observations).gather(1, actions.unsqueeze(1)).squeeze(1)
        loss = functional.smooth_l1_loss(values, targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def drain(self) -> None:
        """Wait until the device has done everything asked of it."""
        torch_device.drain(self.device)

    @property
    def num_compiled(self) -> int:
        """Graphs compiled so far in this process."""
        return torch_device.num_compiled_graphs()

    def check(self) -> None:
        """Raise unless the acting path was compiled, the last loss is finite, and weights moved and are finite."""
        if self.num_compiled == 0:
            raise VelocityError("the acting path was never compiled: this would have measured an eager policy")
        if self.last_loss is None or not torch.isfinite(self.last_loss):
            raise VelocityError(f"the last loss is {self.last_loss}, expected a finite one")
        pairs = list(zip(self.network.parameters(), self.target.parameters(), strict=True))
        if not all(bool(torch.isfinite(weights).all()) for weights, _ in pairs):
            raise VelocityError("the network's weights are not finite after the updates")
        if all(torch.equal(weights, initial) for weights, initial in pairs):
            raise VelocityError(f"the network's weights did not change in {self.num_updates} updates")

    def facts(self) -> dict[str, Any]:
        """Return device, threads and schedule of this agent."""
        return {
            **torch_device.torch_facts(self.device),
            "train_freq": self.train_freq,
            "batch_size": self.batch_size,
            "buffer_cap": self.replay.capacity,
            "num_updates": self.num_updates,
        }
