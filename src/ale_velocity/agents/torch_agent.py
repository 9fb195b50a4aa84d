"""What the agents that compute with torch have in common."""

from __future__ import annotations

import abc
import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ale_velocity.agents import torch_device
from ale_velocity.errors import VelocityError

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 1


class TorchAgent(abc.ABC):
    """A network on a device, the way of observations to it and of actions back, and the check of its work.

    It acts on batches of `num_rows` of `num_envs` envs.
    """

    rollout = 1
    max_gradient_norm: float | None = None
    """To which an update clips the gradients together; None does not clip."""
    optimizer: torch.optim.Optimizer
    loss: Callable[..., torch.Tensor]
    """Of a minibatch, whose columns are the arguments."""

    def __init__(self, network: nn.Module, device: torch.device, num_envs: int, num_rows: int) -> None:
        self.device = device
        self.num_envs = num_envs
        self.num_rows = num_rows
        self.network = network.to(device)
        self.num_updates = 0
        self.last_loss: torch.Tensor | None = None
        self._initial = copy.deepcopy(self.network.state_dict())
        self._loss = self.loss  # or a compiled form of it
        self._held: tuple[torch.Tensor, ...] = ()

    def to_device(self, observations: Any) -> torch.Tensor:
        """Return host observations as a tensor on the device.

        An array is the caller's own and may be shared; a tensor is a buffer that is filled again, so it is copied.
        """
        if isinstance(observations, torch.Tensor):
            return observations.to(self.device, copy=True)
        return torch.from_numpy(observations).to(self.device)

    def to_host(self, values: torch.Tensor) -> Any:
        """Return a tensor as a numpy array, which waits for it."""
        return values.cpu().numpy()

    def ends_to_device(self, rewards: Any, terminated: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Return host rewards and terminations as tensors on the device."""
        return torch.as_tensor(rewards).to(self.device), torch.as_tensor(terminated).to(self.device)

    def ids_to_device(self, env_ids: Any) -> torch.Tensor:
        """Return host env ids as int64 on the device."""
        return torch.as_tensor(env_ids).to(self.device).long()

    @abc.abstractmethod
    def decide(self, observations: torch.Tensor) -> Any:
        """Return what `act` returns, eagerly."""

    def update(self, *minibatch: torch.Tensor) -> torch.Tensor:
        """Take one optimizer step on a minibatch, the columns of `loss`, and return its loss, still on the device."""
        loss = self._loss(*minibatch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.max_gradient_norm is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.max_gradient_norm)
        self.optimizer.step()
        return loss.detach()

    def hold(self, columns: tuple[torch.Tensor, ...]) -> None:
        """Allocate memory that holds one row of each column for each env, once."""
        if not self._held:
            self._held = tuple(column.new_zeros((self.num_envs, *column.shape[1:])) for column in columns)

    def swap_held(self, env_ids: Any, *columns: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Keep the rows of each column as the newest of their envs, and return the rows that were kept before."""
        self.hold(columns)
        rows = self.ids_to_device(env_ids)
        previous = tuple(held[rows] for held in self._held)
        for held, column in zip(self._held, columns, strict=True):
            held[rows] = column
        return previous

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
        pairs = [(weights, self._initial[name]) for name, weights in self.network.state_dict().items()]
        if not all(bool(torch.isfinite(weights).all()) for weights, _ in pairs):
            raise VelocityError("the network's weights are not finite after the updates")
        if all(torch.equal(weights, initial) for weights, initial in pairs):
            raise VelocityError(f"the network's weights did not change in {self.num_updates} updates")

    def facts(self) -> dict[str, Any]:
        """Return device, threads and the number of updates."""
        return {**torch_device.torch_facts(self.device), "num_updates": self.num_updates}
