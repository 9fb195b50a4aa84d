"""Wrong answers of a vector env are errors that name them."""

from __future__ import annotations

import numpy as np
import pytest

from ale_velocity.checked import CheckedEnvs
from ale_velocity.errors import VelocityError
from batched_fakes import BatchedFakeEnv


def answered(fault, batch_size=4):
    """Reset 8 envs rightly, then send and receive once with a fault."""
    wrong = []
    envs = CheckedEnvs(BatchedFakeEnv(8, batch_size, fault=lambda ids: fault(ids) if wrong else ids), 8, batch_size)
    envs.reset(seed=1)
    wrong.append(True)
    envs.send(np.zeros(batch_size, dtype=np.int64))
    return envs.recv()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda ids: [*ids, 0], "returned 5 observations, 5 rewards and 5 ids, expected 4 of each"),
        (lambda _: [], "returned 0 observations, 0 rewards and 0 ids, expected 4 of each"),
        (lambda _: [4, 5, 6, 6], r"returned ids \[4, 5, 6, 6\], expected 4 different ones of 8 envs"),
        (lambda _: [4, 5, 6, 8], r"returned ids \[4, 5, 6, 8\] of 8 envs"),
    ],
    ids=["five rows", "no rows", "a repeated id", "an unknown id"],
)
def test_a_wrong_half_batch_is_refused(fault, message):
    """Five rows for four, none, an env twice, an env that is not there."""
    with pytest.raises(VelocityError, match=message):
        answered(fault)


def test_whole_batches_must_be_in_order():
    """Loops over whole batches pair rows by their place."""
    with pytest.raises(VelocityError, match="in order"):
        answered(lambda ids: ids[::-1], batch_size=8)


def test_a_receive_without_a_send_is_refused():
    """It would wait for ever, in native code that no signal stops."""
    envs = CheckedEnvs(BatchedFakeEnv(8), 8, 8)
    envs.reset(seed=1)
    envs.send(np.zeros(8, dtype=np.int64))
    envs.recv()
    with pytest.raises(VelocityError, match="recv of 8 rows with 0 asked for"):
        envs.recv()


def test_rows_of_each_env_are_counted():
    """Two half batches of a reset, then the first half again."""
    envs = CheckedEnvs(BatchedFakeEnv(4, 2), 4, 2)
    envs.reset(seed=1)
    envs.send(np.zeros(2, dtype=np.int64))
    envs.recv()
    envs.send(np.zeros(2, dtype=np.int64))
    envs.recv()
    assert envs.received.tolist() == [2, 2, 1, 1]
