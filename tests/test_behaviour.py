"""The fingerprint of what an emulator does, of real envs and of envs that differ in one answer."""

from __future__ import annotations

import numpy as np
import pytest

from ale_velocity import backends, behaviour, envs
from ale_velocity.behaviour import difference, fingerprint
from batched_fakes import BatchedFakeEnv


@pytest.fixture
def play(monkeypatch):
    """Return a function that fingerprints a vector env in place of ale-py's."""

    def played(env):
        monkeypatch.setitem(backends.BACKENDS, "ale", lambda *_: env)
        return fingerprint("ale", "pong")

    return played


class Changed(BatchedFakeEnv):
    """A fake env that changes one of the five parts of its answer to a step."""

    def __init__(self, part=None, change=None, at=behaviour.ENV_STEPS):
        super().__init__(1, episode_length=300)
        self.part, self.change, self.at, self.count = part, change, at, 0

    def step(self, actions):
        answer = list(super().step(actions))
        self.count += 1
        if self.part is not None and self.count >= self.at:
            answer[self.part] = self.change(answer[self.part])
        return tuple(answer)


def test_real_envs_give_one_fingerprint_whatever_the_threads(monkeypatch):
    """Twice with one thread, once with two; another game is other work."""
    first = fingerprint("ale", "pong")
    assert fingerprint("ale", "pong") == first
    assert fingerprint("ale", "ms_pacman") != first
    monkeypatch.setitem(backends.BACKENDS, "ale", lambda game, n, _, batch: envs.open_vector_env(game, n, 2, batch))
    assert fingerprint("ale", "pong") == first


def test_actions_and_digest_are_of_this_scheme(play):
    """Whoever changes steps, actions or order of values bumps `SCHEME`, or old results would be called other work."""
    assert play(Changed()) == "1-95c09db2370d2634"


@pytest.mark.parametrize(
    ("part", "change"),
    [
        (0, lambda observations: np.where(observations == 0, 1, observations)),
        (1, lambda rewards: rewards + 1),
        (2, np.logical_not),
        (3, np.logical_not),
    ],
    ids=["observation", "reward", "terminated", "truncated"],
)
def test_the_last_answer_counts(play, part, change):
    """Any one difference is seen, also in the last env-step; and one in the step after it is not."""
    assert play(Changed(part, change)) != play(Changed())
    assert play(Changed(part, change, at=behaviour.ENV_STEPS + 1)) == play(Changed())


def test_other_types_of_the_same_values_are_the_same_work(play):
    """Rewards as floats, as gymnasium has them."""
    assert play(Changed(1, lambda rewards: rewards.astype(np.float64), at=1)) == play(Changed())


def test_the_envs_are_closed(play):
    """Nothing of them is left when the next cell opens its own."""
    env = Changed()
    play(env)
    assert env.closed


@pytest.mark.parametrize("backend", ["fixed", "envpool"])
def test_what_is_no_releases_emulator_has_none(backend):
    """Fixed pictures, and an emulator that comes from elsewhere."""
    assert fingerprint(backend, "pong") is None


def test_baselines_have_their_own():
    """gymnasium's envs are the same in processes; their pictures are not those of the vector env."""
    pytest.importorskip("cv2")
    assert fingerprint("gymnasium_sync", "pong") == fingerprint("gymnasium_async", "pong") != fingerprint("ale", "pong")


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [("1-a", "1-b", True), ("1-a", "1-a", False), (None, "1-a", False), ("1-a", None, False), ("1-a", "2-b", False)],
)
def test_difference(before, after, differ):
    """Nothing is said of results without a fingerprint, and of fingerprints of another scheme."""
    assert bool(difference(before, after)) == differ
    if differ:
        assert difference(before, after).endswith("(fingerprints 1-a and 1-b)")
