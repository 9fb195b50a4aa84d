"""Opening the vector env: games, releases, threads."""

from __future__ import annotations

import os

import ale_py
import numpy as np
import pytest

from ale_velocity import envs
from ale_velocity.errors import NotAvailableError, VelocityError


def test_the_real_env_gives_what_the_workload_says():
    """Grayscale uint8 stacks, six actions for Pong, rewards clipped, rows as many as envs."""
    vector_env = envs.open_vector_env("pong", 3, 2)
    observations, _ = vector_env.reset(seed=envs.SEED)
    assert (observations.shape, observations.dtype) == ((3, 4, 84, 84), np.uint8)
    assert vector_env.single_action_space.n == 6
    _, rewards, terminated, truncated, info = vector_env.step(np.zeros(3, dtype=np.int64))
    assert (len(rewards), len(terminated), len(truncated)) == (3, 3, 3)
    assert sorted(info["env_id"]) == [0, 1, 2]
    # The frame number counts emulator frames: one env-step is FRAMESKIP of them.
    first = info["episode_frame_number"].copy()
    second = vector_env.step(np.zeros(3, dtype=np.int64))[4]["episode_frame_number"]
    assert (second - first).tolist() == [envs.FRAMESKIP] * 3
    vector_env.close()


def test_each_opening_starts_afresh():
    """Nothing of one env is seen by the next: same seed, same first picture, same frame number."""
    firsts = []
    for _ in range(2):
        vector_env = envs.open_vector_env("pong", 2, 2)
        observations, info = vector_env.reset(seed=envs.SEED)
        firsts.append((observations.tobytes(), info["episode_frame_number"].tolist()))
        vector_env.step(np.ones(2, dtype=np.int64))
        vector_env.close()
    assert firsts[0] == firsts[1]


def test_received_observations_are_not_overwritten():
    """Loops keep a batch while the next one is made: ale-py must not reuse its memory."""
    vector_env = envs.open_vector_env("pong", 2, 2)
    vector_env.reset(seed=envs.SEED)
    held = vector_env.step(np.full(2, 2))[0]
    copy = held.copy()
    for _ in range(20):
        vector_env.step(np.full(2, 3))
    assert np.array_equal(held, copy)
    vector_env.close()


@pytest.mark.parametrize(("game", "number"), [("pong", 6), ("ms_pacman", 9)])
def test_the_number_of_actions_is_the_games(game, number):
    """Known without a vector env, and the same as the vector env's."""
    assert envs.num_actions(game) == number
    vector_env = envs.open_vector_env(game, 1, 1)
    assert vector_env.single_action_space.n == number
    vector_env.close()


def test_an_unknown_game_names_the_nearest():
    """A misspelt ROM is an error with a way out."""
    with pytest.raises(VelocityError, match="no ROM 'ms_pacmann'; did you mean ms_pacman"):
        envs.check_game("ms_pacmann")


def test_a_release_without_the_vector_env_is_not_available(monkeypatch, tmp_path):
    """The reason names the release and the first one that has it."""
    monkeypatch.setattr(ale_py, "__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setattr(envs.metadata, "version", lambda _: "0.10.2")
    with pytest.raises(NotAvailableError, match=r"ale-py 0.10.2 has no AtariVectorEnv \(it came with 0.11.0\)"):
        envs.open_vector_env("pong", 1, 1)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "20000 100000\n"}, 1),
        ({"cpu.max": "1600000 100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
    ],
)
def test_usable_cpus(monkeypatch, tmp_path, files, expected):
    """The smaller of the affinity and the cgroup's quota, rounded up, in either version of cgroups."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert envs.usable_cpus(tmp_path) == expected


@pytest.mark.parametrize(("cpus", "num_envs", "expected"), [(64, 4, 4), (64, 256, 16), (2, 256, 2), (8, 16, 8)])
def test_emulator_threads(monkeypatch, cpus, num_envs, expected):
    """min(num_envs, 16), within the usable CPUs: the same in every release."""
    monkeypatch.setattr(envs, "usable_cpus", lambda: cpus)
    assert envs.emulator_threads(num_envs) == expected


@pytest.mark.parametrize(("wanted", "expected"), [(1, 1), (2, 2), (4, 4), (8, 4), (64, 4)])
def test_wanted_threads_are_clamped_to_the_cpus(monkeypatch, wanted, expected):
    """More threads than CPUs would be other work before ale-py 0.12 than after: clamped the same in every release."""
    monkeypatch.setattr(envs, "usable_cpus", lambda: 4)
    assert envs.emulator_threads(256, wanted) == expected
