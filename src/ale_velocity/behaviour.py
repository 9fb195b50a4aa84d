"""What an emulator does, as a fingerprint: releases whose fingerprints differ do different work.

A rate tells of speed only between releases that answer the same seed and actions with the same observations,
rewards and ends of episodes. The fingerprint is of one env, so that it is the same for every env count, loop and agent.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ale_velocity import backends, envs

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEME = 1  # bump it with whatever below changes a fingerprint: those of different schemes are not compared
# Long enough for a first episode of Pong (783 env-steps) and Ms. Pac-Man (371) and what follows, since ale-py 0.11.0
# answers as its successors do until an episode ends; short enough for less than a second.
ENV_STEPS = 1000
# What is played, by what is measured. The envs of gymnasium's async vector env are those of the sync one, in processes
# that must not be forked from one in which an agent's threads ran. The fixed pictures are nobody's work, and
# EnvPool's emulator is its own, whatever the release.
PLAYED = {"ale": "ale", "gymnasium_sync": "gymnasium_sync", "gymnasium_async": "gymnasium_sync"}


def fingerprint(backend: str, game: str) -> str | None:
    """Play a fresh env of a backend, and return `SCHEME-DIGEST`, 16 hex digits of its answers' SHA-256.

    None for a backend without an emulator of a release.
    """
    if backend not in PLAYED:
        return None
    digest = hashlib.sha256()
    opened: Any = backends.open_envs(PLAYED[backend], "one_env", game, 1, 1)
    with contextlib.closing(opened):
        observations, _ = opened.reset(seed=envs.SEED)
        digest.update(observations.astype(np.uint8).tobytes())
        for action in _actions(int(opened.single_action_space.n)):
            observations, rewards, terminated, truncated, _ = opened.step(np.array([action], dtype=np.int64))
            # In types of our own, so that another type with the same values is no other answer.
            for values, kind in ((observations, "u1"), (rewards, "<f8"), (terminated, "?"), (truncated, "?")):
                digest.update(values.astype(kind).tobytes())
    return f"{SCHEME}-{digest.hexdigest()[:16]}"


def is_known(before: str | None, after: str | None) -> bool:
    """Whether two fingerprints tell if the work is the same: both are there, and of one scheme."""
    if not before or not after:
        return False
    return before.partition("-")[0] == after.partition("-")[0]


def difference(before: str | None, after: str | None) -> str:
    """Say that two fingerprints are of different work; empty where they agree, or where they cannot tell."""
    if before == after or not is_known(before, after):
        return ""
    return f"the same seed and actions gave other observations or rewards (fingerprints {before} and {after})"


def _actions(num_actions: int) -> Iterator[int]:
    """Yield the actions: the upper bits of C's old generator, which no release of a library changes."""
    state = envs.SEED
    for _ in range(ENV_STEPS):
        state = (1_103_515_245 * state + 12_345) % 2**31
        yield (state >> 16) % num_actions
