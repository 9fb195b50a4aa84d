"""No learner at all: actions from a fixed table, so that a loop measures the emulator alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

TABLE_ROWS = 1024  # actions repeat after this many iterations; long against an episode's fate, small in cache
TABLE_SEED = 1


class FixedActions:
    """Actions drawn once with numpy, never from the library under test: int64 `(num_rows,)` an iteration."""

    num_updates = None
    num_compiled = 0
    updates_per_env_step = None
    rollout = 1

    def __init__(self, num_rows: int, num_actions: int) -> None:
        table = np.random.default_rng(TABLE_SEED).integers(num_actions, size=(TABLE_ROWS, num_rows), dtype=np.int64)
        self._actions = itertools.cycle(list(table))

    def to_device(self, observations: Any) -> Any:
        """Return them as they are: nothing computes on them."""
        return observations

    def act(self, observations: Any) -> Any:  # noqa: ARG002 (the table does not look)
        """Return the next row of the table."""
        return next(self._actions)

    def to_host(self, values: Any) -> Any:
        """Return them as an array: a loop's tensors lie on the host too, and share their memory with it."""
        return values if isinstance(values, np.ndarray) else values.numpy()

    def exchange(self, env_ids: Any, observations: Any, actions: Any) -> Any:  # noqa: ARG002 (nothing is paired)
        """Return them as they are: nothing is stored."""
        return observations, actions

    def store(self, *_transition: Any, env_ids: Any = None) -> None:
        """Remember nothing."""

    def learn(self, iteration: int) -> None:
        """Learn nothing."""

    def drain(self) -> None:
        """There is no device to wait for."""

    def check(self) -> None:
        """There is no work of its own to check."""

    def facts(self) -> dict[str, Any]:
        """Say that no device was used."""
        return {"device": "none"}
