"""A vector env that answers in batches of any envs, and an agent that keeps each env's transitions apart."""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque

import numpy as np
from gymnasium.spaces import Box, Discrete

NUM_ACTIONS = 6
SHAPE = (4, 84, 84)


class BatchedFakeEnv:
    """Each env's picture shows its seed and how many steps it made; its reward is its action.

    Batches hold the envs that have waited longest. `fault(env_ids)` may change the ids of an answer, and with
    them its row count.
    """

    def __init__(self, num_envs=4, batch_size=None, episode_length=None, autoreset="next_step", fault=None):
        self.num_envs = num_envs
        self.batch_size = batch_size or num_envs
        self.single_action_space = Discrete(NUM_ACTIONS)
        self.single_observation_space = Box(0, 255, SHAPE, np.uint8)
        self.episode_length = episode_length
        self.autoreset = autoreset
        self.fault = fault or (lambda env_ids: env_ids)
        self.closed = False

    def reset(self, *, seed):
        self.steps = np.zeros(self.num_envs, dtype=np.int64)
        self.in_episode = np.zeros(self.num_envs, dtype=np.int64)
        self.ended = np.zeros(self.num_envs, dtype=bool)
        self.num_episodes = 0
        self.waiting = deque((env_id, None) for env_id in range(self.num_envs))
        self.seed = seed
        observations, _, _, _, info = self.recv()
        return observations, info

    def step(self, actions):
        self.send(actions)
        return self.recv()

    def send(self, actions):
        self.waiting.extend(zip(self.last_ids, actions.tolist(), strict=True))

    def recv(self):
        batch = [self.waiting.popleft() for _ in range(self.batch_size)]
        answers = [self._advance(env_id, action) for env_id, action in batch]
        self.last_ids = [env_id for env_id, _ in batch]
        env_ids = np.array(self.fault(np.array(self.last_ids, dtype=np.int32)), dtype=np.int32)
        rows = np.resize(np.arange(self.batch_size), len(env_ids))
        pictures, rewards, ends = (np.array(column) for column in zip(*answers, strict=True))
        return (
            pictures[rows],
            rewards[rows].astype(np.int32),
            ends[rows],
            np.zeros(len(rows), bool),
            {"env_id": env_ids},
        )

    def close(self):
        self.closed = True

    def _advance(self, env_id, action):
        if action is None or (self.autoreset == "next_step" and self.ended[env_id]):
            reward, self.in_episode[env_id], self.ended[env_id] = 0, 0, False
        else:
            reward = action
            self.in_episode[env_id] += 1
            self.ended[env_id] = self.in_episode[env_id] == self.episode_length
            self.num_episodes += int(self.ended[env_id])
            if self.autoreset == "same_step" and self.ended[env_id]:
                self.in_episode[env_id] = 0
        self.steps[env_id] += 1
        picture = np.zeros(SHAPE, dtype=np.uint8)
        picture[0, :2] = [[(self.seed + env_id) % 256], [self.steps[env_id] % 256]]
        return picture, reward, bool(self.ended[env_id])


class PairingAgent:
    """Its action is a checksum of the picture, so that any wrong pairing changes what follows."""

    updates_per_env_step = None
    num_updates = None
    num_compiled = 0
    rollout = 1

    def __init__(self, num_envs):
        self.transitions = defaultdict(list)
        self.learnt = []
        self.rows_seen = []
        self._held = {}
        self._num_envs = num_envs

    def to_device(self, observations):
        return np.array(observations if isinstance(observations, np.ndarray) else observations.numpy())

    def act(self, observations):
        self.rows_seen.append(len(observations))
        return observations.reshape(len(observations), -1).astype(np.int64).sum(axis=1) % NUM_ACTIONS

    def to_host(self, values):
        return values

    def exchange(self, env_ids, observations, actions):
        nothing = np.zeros_like(observations[0]), 0
        previous = [self._held.get(env_id, nothing) for env_id in env_ids.tolist()]
        self._held.update(zip(env_ids.tolist(), zip(observations, actions, strict=True), strict=True))
        return tuple(np.array(column) for column in zip(*previous, strict=True))

    def store(self, observations, actions, rewards, terminated, next_observations, *, env_ids=None):
        ids = range(self._num_envs) if env_ids is None else env_ids.tolist()
        rows = zip(observations, actions, rewards, terminated, next_observations, strict=True)
        for env_id, (before, action, reward, ended, after) in zip(ids, rows, strict=True):
            self.transitions[env_id].append((_digest(before), int(action), float(reward), bool(ended), _digest(after)))

    def learn(self, iteration):
        self.learnt.append(iteration)

    def drain(self):
        pass

    def check(self):
        pass


def _digest(picture):
    return hashlib.sha256(np.ascontiguousarray(picture).tobytes()).hexdigest()[:12]
