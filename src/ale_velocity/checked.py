"""Check every answer of a vector env: a wrong count or id is an error, never a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ale_velocity.errors import VelocityError


class CheckedEnvs:
    """A vector env that raises `VelocityError` where its answers are not what was asked for.

    Every answer must hold `batch_size` rows and name each env at most once; with `batch_size == num_envs` the
    rows are in the order of the envs. A receive needs a send before it: without one it would wait for ever.
    `received` counts the rows of each env of a smaller batch since it was opened, those of resets included.

    The checks are inside the measured windows: at one env they must stay far below the millisecond of a step.
    """

    def __init__(self, envs: Any, num_envs: int, batch_size: int) -> None:
        self.unchecked = envs
        self.num_envs = num_envs
        self.batch_size = batch_size
        self.single_action_space = envs.single_action_space
        self.observation_shape = envs.single_observation_space.shape
        self.received = np.zeros(num_envs, dtype=np.int64)
        self._ids_in_order: bytes | None = None
        self._num_asked = 0

    def reset(self, *, seed: int) -> tuple[Any, dict[str, Any]]:
        """Reset all envs; the answer is the first batch of them."""
        observations, info = self.unchecked.reset(seed=seed)
        self._num_asked = self.num_envs
        self._check(observations, observations, info["env_id"])
        return observations, info

    def step(self, actions: Any) -> Any:
        """Send the actions and wait for their rows."""
        answer = self.unchecked.step(actions)
        self._num_asked += len(actions)
        self._check(answer[0], answer[1], answer[4]["env_id"])
        return answer

    def send(self, actions: Any) -> None:
        """Send one action for each env of the last batch received."""
        self.unchecked.send(actions)
        self._num_asked += len(actions)

    def recv(self) -> Any:
        """Wait for the next batch."""
        if self._num_asked < self.batch_size:
            raise VelocityError(
                f"recv of {self.batch_size} rows with {self._num_asked} asked for: it would wait for ever"
            )
        answer = self.unchecked.recv()
        self._check(answer[0], answer[1], answer[4]["env_id"])
        return answer

    def check_all_returned(self, since: Any) -> None:
        """Raise unless every env returned rows since `received` was `since`."""
        if missing := np.flatnonzero(self.received == since).tolist():
            raise VelocityError(f"envs {missing} never returned, while the others went on")

    def close(self) -> None:
        """Close the envs."""
        self.unchecked.close()

    def _check(self, observations: Any, rewards: Any, env_ids: Any) -> None:
        if not len(observations) == len(rewards) == len(env_ids) == self.batch_size:
            raise VelocityError(
                f"the env returned {len(observations)} observations, {len(rewards)} rewards and {len(env_ids)} ids, "
                f"expected {self.batch_size} of each"
            )
        self._num_asked -= self.batch_size
        if self.batch_size == self.num_envs:
            if self._ids_in_order is None:
                self._ids_in_order = np.arange(self.num_envs, dtype=env_ids.dtype).tobytes()
            # As bytes: comparing arrays costs ten times as much.
            right = env_ids.tobytes() == self._ids_in_order
        else:
            num_received = int(self.received.sum())
            try:
                self.received[env_ids] += 1  # once an env, however often a batch names it
            except IndexError as error:
                raise VelocityError(f"the env returned ids {env_ids.tolist()} of {self.num_envs} envs") from error
            right = self.received.sum() == num_received + self.batch_size
        if not right:
            raise VelocityError(
                f"the env returned ids {env_ids.tolist()}, expected {self.batch_size} different ones "
                f"of {self.num_envs} envs" + (", in order" if self.batch_size == self.num_envs else "")
            )


class TwoEnvs:
    """Two vector envs that hold half of the envs each, `first` those with the lower ids."""

    def __init__(self, first: CheckedEnvs, second: CheckedEnvs) -> None:
        self.halves = (first, second)
        self.num_envs = first.num_envs + second.num_envs
        self.batch_size = first.batch_size
        self.single_action_space = first.single_action_space

    def close(self) -> None:
        """Close both."""
        for half in self.halves:
            half.close()
