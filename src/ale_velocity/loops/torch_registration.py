"""Vector envs as torch custom ops: the installed ale-py's own where it has them, else ours over send and recv.

An op names its vector env by a handle, a plain int, so that graphs can hold it. Send and recv are ordered effects:
a compiler may neither drop, reorder nor merge them.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

from ale_velocity.errors import VelocityError

if TYPE_CHECKING:
    from collections.abc import Callable

NAMESPACE = "ale_velocity"
OUTPUTS = ("observations", "rewards", "terminated", "truncated", "env_ids")
NUM_VALUES = (5, 6)  # of AtariVectorEnv.torch(): its later revisions put get_last_info before unregister


class TorchOps(NamedTuple):
    """The ops of one vector env.

    `send(handle_id, actions)`: actions int64 `(num_envs,)`. `recv(handle_id)` and `step(handle_id, actions)` return
    tensors in host memory: observations, rewards, terminated, truncated and a fifth (ours: env ids), valid until
    the next receive. `unregister()` forgets the handle.
    """

    handle_id: int
    send: Callable[[int, torch.Tensor], None]
    step: Callable[[int, torch.Tensor], tuple[torch.Tensor, ...]]
    recv: Callable[[int], tuple[torch.Tensor, ...]]
    unregister: Callable[[], Any]


def torch_ops(envs: Any) -> TorchOps:
    """Return the ops of checked envs; an `AtariVectorEnv.torch()` of another form raises `VelocityError`."""
    native = getattr(envs.unchecked, "torch", None)
    if native is None:
        return register(envs)
    values = native()
    if len(values) not in NUM_VALUES:
        raise VelocityError(f"AtariVectorEnv.torch() returned {len(values)} values, expected 5 or 6")
    handle_id, send, step, recv = values[:4]
    return TorchOps(handle_id, send, step, recv, unregister=values[-1])


def register(envs: Any) -> TorchOps:
    """Return ops over `envs.send` and `envs.recv`, which must have been neither sent to nor reset yet."""
    _define_ops()
    handle_id = next(_handles)
    _registered[handle_id] = _Registered(envs)
    ops = getattr(torch.ops, NAMESPACE)
    return TorchOps(
        handle_id, ops.send.default, ops.step.default, ops.recv.default, lambda: _registered.pop(handle_id, None)
    )


_handles = itertools.count(1)
_registered: dict[int, _Registered] = {}


class _Registered:
    """A vector env with the buffers its answers are copied to: pinned where there is a CUDA device to copy on to."""

    def __init__(self, envs: Any) -> None:
        self.envs = envs
        rows = envs.batch_size
        shapes = {"observations": (rows, *envs.observation_shape)}
        dtypes = {"observations": torch.uint8, "rewards": torch.float32, "env_ids": torch.int64}
        self.buffers = tuple(
            torch.empty(
                shapes.get(name, (rows,)), dtype=dtypes.get(name, torch.bool), pin_memory=torch.cuda.is_available()
            )
            for name in OUTPUTS
        )
        self._arrays = tuple(buffer.numpy() for buffer in self.buffers)

    def keep(self, answer: Any) -> list[torch.Tensor]:
        """Copy an answer of the envs into the buffers, and return them."""
        *values, info = answer
        for array, value in zip(self._arrays, (*values, info["env_id"]), strict=True):
            array[:] = value
        return list(self.buffers)


def _lookup(handle_id: int) -> _Registered:
    try:
        return _registered[int(handle_id)]
    except KeyError:
        raise VelocityError(f"no vector env is registered under handle {handle_id}") from None


def _send(handle_id: int, actions: torch.Tensor) -> None:
    _lookup(handle_id).envs.send(actions.cpu().numpy())


def _step(handle_id: int, actions: torch.Tensor) -> list[torch.Tensor]:
    registered = _lookup(handle_id)
    return registered.keep(registered.envs.step(actions.cpu().numpy()))


def _recv(handle_id: int) -> list[torch.Tensor]:
    registered = _lookup(handle_id)
    return registered.keep(registered.envs.recv())


def _fake_send(handle_id: int, actions: torch.Tensor) -> None:
    """Sending has no result."""


def _fake_answer(handle_id: int, *_actions: torch.Tensor) -> list[torch.Tensor]:
    """Tensors like the buffers, for a compiler that traces without running."""
    return [torch.empty(buffer.shape, dtype=buffer.dtype) for buffer in _lookup(handle_id).buffers]


@functools.cache
def _define_ops() -> torch.library.Library:
    """Define the ops once a process; the library must live as long as they do, which the cache sees to."""
    library = torch.library.Library(NAMESPACE, "DEF")
    answer = ", ".join(f"Tensor {name}" for name in OUTPUTS)
    for schema, function, fake in (
        ("send(int handle_id, Tensor actions) -> ()", _send, _fake_send),
        (f"step(int handle_id, Tensor actions) -> ({answer})", _step, _fake_answer),
        (f"recv(int handle_id) -> ({answer})", _recv, _fake_answer),
    ):
        name = library.define(schema).partition("::")[2] or schema.partition("(")[0]
        library.impl(name, function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=library)
        _register_effectful_op(getattr(getattr(torch.ops, NAMESPACE), name).default, _EffectType.ORDERED)
    return library
