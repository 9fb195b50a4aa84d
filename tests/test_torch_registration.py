"""Vector envs as torch custom ops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ale_velocity.checked import CheckedEnvs
from ale_velocity.errors import VelocityError
from ale_velocity.loops import torch_registration
from batched_fakes import SHAPE, BatchedFakeEnv


@pytest.fixture
def envs():
    checked = CheckedEnvs(BatchedFakeEnv(4), 4, 4)
    checked.reset(seed=1)
    return checked


@pytest.fixture
def ops(envs):
    registered = torch_registration.register(envs)
    yield registered
    registered.unregister()


def test_receive_gives_five_tensors(ops):
    """Observations, rewards, terminated, truncated and env ids, in host memory."""
    ops.send(ops.handle_id, torch.arange(4))
    received = ops.recv(ops.handle_id)
    assert [(4, *SHAPE), (4,), (4,), (4,), (4,)] == [tuple(value.shape) for value in received]
    assert [torch.uint8, torch.float32, torch.bool, torch.bool, torch.int64] == [value.dtype for value in received]
    assert received[1].tolist() == [0, 1, 2, 3]
    assert received[4].tolist() == [0, 1, 2, 3]


def test_step_sends_and_receives(ops):
    """One op for both."""
    assert ops.step(ops.handle_id, torch.tensor([3, 2, 1, 0]))[1].tolist() == [3, 2, 1, 0]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's compiler calls its own old parts
def test_ops_compile_into_one_graph_in_order(ops, envs):
    """With fullgraph, two sends each followed by a receive stay four effects, in order, though no value links them."""

    @torch.compile(fullgraph=True)
    def two_steps(actions):
        ops.send(ops.handle_id, actions)
        first = ops.recv(ops.handle_id)[1].sum()
        ops.send(ops.handle_id, actions + 1)
        return first, ops.recv(ops.handle_id)[1].sum()

    first, second = two_steps(torch.tensor([0, 1, 2, 3]))
    assert (int(first), int(second)) == (6, 10)
    assert envs._num_asked == 0  # each send was answered


def test_an_unregistered_handle_is_refused(ops):
    """The error names the handle."""
    ops.unregister()
    with pytest.raises(VelocityError, match=f"under handle {ops.handle_id}"):
        ops.recv(ops.handle_id)


@pytest.mark.parametrize("extra", [(), ("get_last_info",)], ids=["five values", "six values"])
def test_an_installed_torch_interface_is_used(envs, extra):
    """`AtariVectorEnv.torch()` gives five values, or six with get_last_info before unregister."""
    envs.unchecked.torch = lambda: (7, "send", "step", "recv", *extra, "unregister")
    assert tuple(torch_registration.torch_ops(envs)) == (7, "send", "step", "recv", "unregister")


def test_an_unknown_torch_interface_is_refused(envs):
    """Neither five nor six values."""
    envs.unchecked.torch = lambda: (7, "send")
    with pytest.raises(VelocityError, match="returned 2 values"):
        torch_registration.torch_ops(envs)


def test_buffers_are_pinned_where_there_is_a_device(ops):
    """Page-locked memory is copied to a device without a stop; without one it is not to be had."""
    ops.send(ops.handle_id, torch.from_numpy(np.zeros(4, dtype=np.int64)))
    assert torch.cuda.is_available() == ops.recv(ops.handle_id)[0].is_pinned()
