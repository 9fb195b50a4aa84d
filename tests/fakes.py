"""An env, an agent and a clock whose behaviour a test writes down."""

from __future__ import annotations

import numpy as np


class FakeClock:
    """A clock that moves only when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def advance(self, seconds):
        self.now += seconds


class FakeVectorEnv:
    """A vector env with next-step autoreset, whose episodes end after `episode_length` steps.

    Observations count the rows' own steps; each call of recv takes `step_s` on the clock. As in ale-py,
    `step` is `send` then `recv`.
    """

    def __init__(self, num_envs, episode_length=3, clock=None, step_s=0.0):
        self.num_envs = num_envs
        self.episode_length = episode_length
        self.clock = clock or FakeClock()
        self.step_s = step_s
        self.calls = []
        self._actions = None
        self._total = 0

    def reset(self, *, seed):
        self.calls.append(("reset", seed))
        self._age = np.zeros(self.num_envs, dtype=np.int64)
        self._done = np.zeros(self.num_envs, dtype=bool)
        return self._observations(), {}

    def send(self, actions):
        assert self._actions is None, "send before the last recv"
        assert len(actions) == self.num_envs
        self.calls.append(("send", list(actions)))
        self._actions = actions

    def recv(self):
        assert self._actions is not None, "recv without a send"
        self.calls.append(("recv",))
        rewards = self._actions.astype(np.int32)
        self._actions = None
        self.clock.advance(self.step_s)
        self._total += 1
        self._age = np.where(self._done, 0, self._age + 1)  # a finished env only resets in its next step
        self._done = self._age == self.episode_length
        return self._observations(), rewards, self._done.copy(), np.zeros(self.num_envs, dtype=bool), {}

    def step(self, actions):
        self.send(actions)
        return self.recv()

    def close(self):
        self.calls.append(("close",))

    def _observations(self):
        observations = np.zeros((self.num_envs, 4, 84, 84), dtype=np.uint8)
        observations[:, 0, 0, 0] = self._age
        observations[:, 0, 0, 1] = self._total % 251 + 1
        return observations


class RecordingAgent:
    """An agent with a fixed policy that writes down the transitions it is given."""

    num_updates = None
    num_compiled = 0

    def __init__(self, policy=None):
        self.policy = policy or (lambda observations: observations[:, 0, 0, 0].astype(np.int64) % 6)
        self.transitions = []
        self.learnt = []
        self.drained = 0

    def to_device(self, observations):
        return observations

    def act(self, observations):
        return self.policy(observations)

    def to_host(self, values):
        return values

    def store(self, observations, actions, rewards, terminated, next_observations):
        for row in zip(observations, actions, rewards, terminated, next_observations, strict=True):
            self.transitions.append(tuple(np.array(value) for value in row))

    def learn(self, iteration):
        self.learnt.append(iteration)

    def drain(self):
        self.drained += 1

    def check(self):
        pass

    def facts(self):
        return {}
