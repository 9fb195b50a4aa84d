"""Envs of each kind open in each layout, or say why not."""

from __future__ import annotations

import contextlib
from importlib import metadata

import numpy as np
import pytest

from ale_velocity import backends, envs
from ale_velocity.agents.emulator import FixedActions
from ale_velocity.errors import NotAvailableError
from ale_velocity.loops import LOOPS


@pytest.mark.parametrize(("layout", "batches", "num_envs"), [("one_env", 2, 1), ("two_envs", 2, 1), ("one_env", 4, 6)])
def test_batches_divide_the_envs(layout, batches, num_envs):
    """One env cannot be halved, nor six quartered."""
    with pytest.raises(NotAvailableError, match=f"a number of envs that {batches} divides, not {num_envs}"):
        backends.open_envs("ale", layout, "pong", num_envs, 1, batches=batches)


@pytest.mark.parametrize("layout", ["one_env", "two_envs"])
def test_double_buffering_is_not_available_where_half_batches_are_wrong(monkeypatch, layout):
    """ale-py 0.11.0 returns wrong row counts."""
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "0.11.0" if name == "ale-py" else real(name))
    with pytest.raises(NotAvailableError, match=r"half batches of ale-py 0.11.0 hold wrong row counts"):
        backends.open_envs("ale", layout, "pong", 2, 1, batches=2)


def test_two_envs_share_the_threads():
    """Both halves together have the threads of one whole."""
    calls = []
    opened = backends.open_envs
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(backends.BACKENDS, "ale", lambda *args: calls.append(args) or backends.FixedEnvs(*args))
        opened("ale", "two_envs", "pong", 8, 4, batches=2)
    assert calls == [("pong", 4, 2, 4), ("pong", 4, 2, 4)]


def test_each_opening_starts_afresh():
    """Nothing of one cell's emulator is seen by the next: frame counters start alike."""
    first, second = (_frame_numbers() for _ in range(2))
    assert first == second


def _frame_numbers():
    with contextlib.closing(backends.open_envs("ale", "one_env", "pong", 2, 1)) as opened:
        _, info = opened.reset(seed=envs.SEED)
        for _ in range(3):
            opened.step(np.zeros(2, dtype=np.int64))
        return info["frame_number"].tolist()


@pytest.mark.parametrize("loop", LOOPS)
def test_fixed_envs_run_in_every_loop(loop):
    """Without an emulator a loop runs the same, on pictures that change."""
    kind = LOOPS[loop]
    running = kind(
        backends.open_envs("fixed", kind.layout, "pong", 4, 1, batches=kind.batches),
        FixedActions(4 // kind.batches, 6),
        1,
    )
    before = FixedActions(4, 6).to_host(running.observations).copy()
    assert running.run(3 * kind.batches) == 12
    assert not np.array_equal(before, FixedActions(4, 6).to_host(running.observations))
