"""The reference workload's two loops written straight down, sharing no code with the package.

`fidelity.py` runs them in alternation with the package's loops: what the package adds must not show.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import ale_py
import torch
from ale_py.vector_env import AtariVectorEnv
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    import numpy as np

CAPACITY, MINIBATCH, TRAIN_FREQ, GAMMA = 10_000, 32, 4, 0.99


class Scaled(nn.Module):
    """Pixels to [0, 1]: the workload has it inside the network, which is compiled as a module."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Divide."""
        return pixels / 255


class BareDqn:
    """Network, replay and update; kept between runs, so that it is compiled once."""

    def __init__(self, device: str) -> None:
        torch.set_float32_matmul_precision("high")
        torch.manual_seed(1)  # the package's: with other weights another game is played, and other numbers computed
        self.device = device
        convolutions = [nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1)]
        heads = [nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 6)]
        self.q = nn.Sequential(Scaled(), *convolutions, *heads).to(device)
        self.target = copy.deepcopy(self.q)
        self.adam = torch.optim.Adam(self.q.parameters(), lr=1e-4)
        self.policy = torch.compile(self.q, mode="reduce-overhead")
        self.pixels = torch.empty((CAPACITY, 4, 84, 84), dtype=torch.uint8, device=device)
        self.next_pixels = torch.empty_like(self.pixels)
        self.actions = torch.empty(CAPACITY, dtype=torch.int64, device=device)
        self.rewards = torch.empty(CAPACITY, device=device)
        self.ends = torch.empty(CAPACITY, device=device)
        self.at = self.size = 0

    def act(self, pixels: torch.Tensor) -> torch.Tensor:
        """Greedy actions."""
        with torch.no_grad():
            torch.compiler.cudagraph_mark_step_begin()
            return self.policy(pixels).argmax(1).clone()

    def keep(
        self, pixels: torch.Tensor, actions: torch.Tensor, rewards: np.ndarray, ends: np.ndarray, after: torch.Tensor
    ) -> None:
        """Store a batch; wrap by index where it does not fit, else by slice."""
        rows = len(rewards)
        where: slice | torch.Tensor = slice(self.at, self.at + rows)
        if self.at + rows > CAPACITY:
            where = torch.arange(self.at, self.at + rows, device=self.device) % CAPACITY
        self.pixels[where], self.actions[where], self.next_pixels[where] = pixels, actions, after
        self.rewards[where] = torch.from_numpy(rewards).to(self.device).float()
        self.ends[where] = torch.from_numpy(ends).to(self.device).float()
        self.at, self.size = (self.at + rows) % CAPACITY, min(self.size + rows, CAPACITY)

    def update(self, number: int) -> None:
        """One step of Adam every fourth iteration."""
        if number % TRAIN_FREQ or self.size < MINIBATCH:
            return
        rows = torch.randint(self.size, (MINIBATCH,), device=self.device)
        with torch.no_grad():
            best = self.target(self.next_pixels[rows]).max(1).values
            wanted = self.rewards[rows] + GAMMA * (1 - self.ends[rows]) * best
        values = self.q(self.pixels[rows]).gather(1, self.actions[rows, None])[:, 0]
        loss = functional.smooth_l1_loss(values, wanted)
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        self.adam.step()


class BareLoop:
    """The loop `step` or `send_recv` over envs of its own."""

    def __init__(self, dqn: BareDqn, loop: str, num_envs: int, num_threads: int) -> None:
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.dqn = dqn
        self.sends_first = loop == "send_recv"
        self.env = AtariVectorEnv("pong", num_envs, frameskip=5, num_threads=num_threads)
        self.pixels = torch.from_numpy(self.env.reset(seed=1)[0]).to(dqn.device)
        if self.sends_first:
            self.actions = dqn.act(self.pixels)
            self.env.send(self.actions.cpu().numpy())

    def run(self, iterations: int) -> int:
        """Run iterations, counted from 0, and return the env-steps."""
        dqn, env = self.dqn, self.env
        for number in range(iterations):
            if self.sends_first:
                received, rewards, ends, _, _ = env.recv()
                after = torch.from_numpy(received).to(dqn.device)
                answer = dqn.act(after)
                env.send(answer.cpu().numpy())
                dqn.keep(self.pixels, self.actions, rewards, ends, after)
                dqn.update(number)
                self.pixels, self.actions = after, answer
            else:
                actions = dqn.act(self.pixels)
                received, rewards, ends, _, _ = env.step(actions.cpu().numpy())
                after = torch.from_numpy(received).to(dqn.device)
                dqn.keep(self.pixels, actions, rewards, ends, after)
                dqn.update(number)
                self.pixels = after
        return iterations * env.num_envs

    def close(self) -> None:
        """Receive what was sent last, and close the envs."""
        if self.sends_first:
            self.env.recv()
        self.env.close()
