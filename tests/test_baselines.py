"""Baselines answer as ale-py's vector env does, or say what they lack."""

from __future__ import annotations

import contextlib
import importlib.util
import sys

import numpy as np
import pytest

from ale_velocity import backends, baselines, envs, suite
from ale_velocity.agents.emulator import FixedActions
from ale_velocity.errors import NotAvailableError, VelocityError
from ale_velocity.loops import LOOPS
from ale_velocity.measure import Protocol, measure

NEEDS_OPENCV = pytest.mark.skipif(importlib.util.find_spec("cv2") is None, reason="OpenCV is not installed")
NEEDS_ENVPOOL = pytest.mark.skipif(importlib.util.find_spec("envpool") is None, reason="EnvPool is not installed")
INSTALLED = [
    pytest.param("gymnasium_sync", marks=NEEDS_OPENCV),
    pytest.param("gymnasium_async", marks=NEEDS_OPENCV),
    pytest.param("envpool", marks=NEEDS_ENVPOOL),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what EnvPool imports, and of forking
@pytest.mark.parametrize("backend", INSTALLED)
def test_a_baseline_looks_like_the_vector_env(backend):
    """Shape, type, range, actions and rewards are those of ale-py's own after the same actions."""
    seen = {}
    for name in ("ale", backend):
        with contextlib.closing(backends.open_envs(name, "one_env", "pong", 2, 2)) as opened:
            opened.reset(seed=envs.SEED)
            for _ in range(30):
                observations, rewards, terminated, truncated, info = opened.step(np.full(2, 2))
            seen[name] = (
                (observations.shape, observations.dtype, int(opened.single_action_space.n)),
                (set(np.unique(rewards)) <= {-1, 0, 1}, terminated.tolist(), truncated.tolist()),
                info["env_id"].tolist(),
            )
            # Pong's background and sprites: the same few greys, however the picture was scaled.
            assert abs(int(np.median(observations)) - 87) <= 2
            assert observations.max() > 200
    assert seen["ale"] == seen[backend]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("backend", INSTALLED)
@pytest.mark.parametrize("loop", ["step", "send_recv"])
def test_a_baseline_is_counted_like_the_vector_env(backend, loop):
    """Rows received, in the same loops under the same measurement."""
    with contextlib.closing(backends.open_envs(backend, "one_env", "pong", 2, 2)) as opened:
        agent = FixedActions(2, 6)
        running = LOOPS[loop](opened, agent, envs.SEED)
        done = measure(running, agent, Protocol("tiny", reps=1, iterations=20, warmup=4), 2)
        running.close()
    assert [window.rows for window in done.windows] == [40]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@NEEDS_ENVPOOL
def test_envpool_has_half_batches():
    """The async mode of EnvPool, in the loop that pairs by id."""
    with contextlib.closing(backends.open_envs("envpool", "one_env", "pong", 4, 2, batches=2)) as opened:
        running = LOOPS["half_batches"](opened, FixedActions(2, 6), envs.SEED)
        assert running.run(20) == 40
        running.close()


def test_gymnasium_has_no_half_batches():
    """Both of its vector envs answer with all envs at once."""
    with pytest.raises(NotAvailableError, match="no half batches"):
        backends.open_envs("gymnasium_sync", "one_env", "pong", 4, 2, batches=2)


def test_what_is_not_installed_is_not_available(monkeypatch):
    """The reason names the package."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(NotAvailableError, match="pip install opencv-python-headless"):
        backends.open_envs("gymnasium_sync", "one_env", "pong", 4, 2)
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(NotAvailableError, match="pip install envpool"):
        backends.open_envs("envpool", "one_env", "pong", 4, 2)


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        (np.full((2, 84, 84, 4), 200, dtype=np.uint8), r"uint8 \(2, 84, 84, 4\), expected uint8 \(2, 4, 84, 84\)"),
        (np.full((2, 4, 84, 84), 200.0, dtype=np.float32), "are float32"),
        (np.ones((2, 4, 84, 84), dtype=np.uint8), "scaled to 1"),
    ],
)
def test_other_pictures_are_refused(observations, message):
    """A shape, a type or a range that would be other work."""
    with pytest.raises(VelocityError, match=message):
        baselines.check_pictures(observations, 2)


def test_every_baseline_has_a_backend_and_a_loop():
    """The benchmark's names lead somewhere."""
    for backend, loop in suite.BASELINES.values():
        assert backend in backends.BACKENDS
        assert loop in LOOPS
