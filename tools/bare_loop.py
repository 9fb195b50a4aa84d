"""The reference workload's two loops written straight down, sharing no code with the package.

`gpu_check.py` runs them in alternation with the package's loops: what the package adds must not show.
"""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING

import ale_py
import torch
from ale_py.vector_env import AtariVectorEnv
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    import numpy as np

CAPACITY, MINIBATCH, TRAIN_FREQ, GAMMA = 10_000, 32, 4, 0.99


class BareDqn:
    """Network, replay and update; kept between runs, so that it is compiled once."""

    def __init__(self, device: str) -> None:
        torch.set_float32_matmul_precision("high")
        self.device = device
        convolutions = [nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1)]
        heads = [nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 6)]
        self.q = nn.Sequential(*convolutions, *heads).to(device)
        self.target = copy.deepcopy(self.q)
        self.adam = torch.optim.Adam(self.q.parameters(), lr=1e-4)
        self.policy = torch.compile(lambda pixels: self.q(pixels / 255), mode="reduce-overhead")
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
            best = self.target(self.next_pixels[rows] / 255).max(1).values
            wanted = self.rewards[rows] + GAMMA * (1 - self.ends[rows]) * best
        values = self.q(self.pixels[rows] / 255).gather(1, self.actions[rows, None])[:, 0]
        loss = functional.smooth_l1_loss(values, wanted)
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        self.adam.step()


def run(
    dqn: BareDqn, loop: str, num_envs: int, *, num_threads: int, warmup: int, iterations: int, reps: int
) -> list[float]:
    """Return env-steps/s of each window of the loop `step` or `send_recv`."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    env = AtariVectorEnv("pong", num_envs, frameskip=5, num_threads=num_threads)
    pixels = torch.from_numpy(env.reset(seed=1)[0]).to(dqn.device)
    actions = None
    if loop == "send_recv":
        actions = dqn.act(pixels)
        env.send(actions.cpu().numpy())
    rates = []
    for window in range(-1, reps):
        if dqn.device == "cuda":
            torch.cuda.synchronize()
        started = time.perf_counter()
        for number in range(warmup if window < 0 else iterations):
            if loop == "step":
                actions = dqn.act(pixels)
                received, rewards, ends, _, _ = env.step(actions.cpu().numpy())
                after = torch.from_numpy(received).to(dqn.device)
                dqn.keep(pixels, actions, rewards, ends, after)
                dqn.update(number)
                pixels = after
            else:
                received, rewards, ends, _, _ = env.recv()
                after = torch.from_numpy(received).to(dqn.device)
                answer = dqn.act(after)
                env.send(answer.cpu().numpy())
                dqn.keep(pixels, actions, rewards, ends, after)
                dqn.update(number)
                pixels, actions = after, answer
        if dqn.device == "cuda":
            torch.cuda.synchronize()
        if window >= 0:
            rates.append(num_envs * iterations / (time.perf_counter() - started))
    if loop == "send_recv":
        env.recv()
    env.close()
    return rates
