"""Who advances the envs: ale-py's vector env, a baseline, or nobody, which leaves the learner's own limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ale_velocity import baselines, envs
from ale_velocity.checked import CheckedEnvs, TwoEnvs
from ale_velocity.errors import NotAvailableError

if TYPE_CHECKING:
    from collections.abc import Callable

FIXED_SEED = 1
NUM_PICTURES = 7  # a prime other than 2 and 5: no window of a protocol ends on the picture it began with


def open_envs(
    backend: str, layout: str, game: str, num_envs: int, num_threads: int, *, batches: int = 1
) -> CheckedEnvs | TwoEnvs:
    """Return the envs of a backend (see `BACKENDS`) in the layout that a loop asks for, checked.

    `one_env` answers with all envs at once, or with one of so many `batches` of them; `two_envs` are two that hold
    half the envs, and half the threads, each. Raises `NotAvailableError` where that cannot be had.
    """
    open_backend = BACKENDS[backend]
    batch_size, rest = divmod(num_envs, batches)
    if rest:
        raise NotAvailableError(f"{batches} batches need a number of envs that {batches} divides, not {num_envs}")
    if backend == "ale" and batches > 1:
        envs.require_vector_env()
        envs.require_double_buffer()
    if layout == "one_env":
        return CheckedEnvs(open_backend(game, num_envs, num_threads, batch_size), num_envs, batch_size)
    threads = max(1, num_threads // 2)
    first, second = (open_backend(game, batch_size, threads, batch_size) for _ in range(2))
    return TwoEnvs(CheckedEnvs(first, batch_size, batch_size), CheckedEnvs(second, batch_size, batch_size))


class FixedEnvs:
    """Envs that answer at once with pictures drawn by numpy: with them a loop measures the learner alone.

    Batches of half the envs alternate between the halves. Pictures change too, so that what is computed
    on them is not always the same. Of the game they have the number of actions, which sizes the network.
    """

    def __init__(self, game: str, num_envs: int, num_threads: int, batch_size: int) -> None:  # noqa: ARG002
        from gymnasium.spaces import Box, Discrete

        self.single_action_space = Discrete(envs.num_actions(game))
        self.single_observation_space = Box(0, 255, envs.OBSERVATION_SHAPE, np.uint8)
        self.num_envs = num_envs
        draw = np.random.default_rng(FIXED_SEED)
        self._pictures = draw.integers(256, size=(NUM_PICTURES, batch_size, *envs.OBSERVATION_SHAPE), dtype=np.uint8)
        self._rewards = np.zeros(batch_size, dtype=np.int32)
        self._dones = np.zeros(batch_size, dtype=np.bool_)
        self._env_ids = np.arange(num_envs, dtype=np.int32).reshape(-1, batch_size)
        self._num_answers = 0

    def reset(self, *, seed: int) -> tuple[Any, dict[str, Any]]:  # noqa: ARG002 (the pictures have one seed)
        """Return the first pictures."""
        observations, *_, info = self.recv()
        return observations, info

    def step(self, actions: Any) -> Any:
        """Return the next pictures, whatever the actions."""
        self.send(actions)
        return self.recv()

    def send(self, actions: Any) -> None:
        """Ignore the actions."""

    def recv(self) -> Any:
        """Return the next pictures, no rewards and no ends."""
        number = self._num_answers
        self._num_answers += 1
        pictures = self._pictures[number // len(self._env_ids) % NUM_PICTURES]
        info = {"env_id": self._env_ids[number % len(self._env_ids)]}
        return pictures, self._rewards, self._dones, self._dones, info

    def close(self) -> None:
        """Nothing is open."""


THREADED = ("ale", "envpool")  # the others have no emulator threads: none at all, or processes

BACKENDS: dict[str, Callable[[str, int, int, int], Any]] = {
    "ale": envs.open_vector_env,
    "fixed": FixedEnvs,
    "gymnasium_sync": baselines.open_gymnasium_sync,
    "gymnasium_async": baselines.open_gymnasium_async,
    "envpool": baselines.open_envpool,
}
