"""What others would pick: gymnasium's vector envs with the usual wrappers, and EnvPool, made equivalent.

All play the same game with 5 frames an env-step, grayscale stacks of 4 at 84 x 84, no-op and fire resets, clipped
rewards, no sticky actions and next-step autoreset. They answer as ale-py's vector env does, so that every loop and
count is the same. Their pictures are of the same shape, type and range, which is checked; not pixel by pixel the
same, since each scales in its own way.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np

from ale_velocity import envs
from ale_velocity.errors import NotAvailableError, VelocityError

NOOP_MAX = 30  # as in ale-py's vector env
MAX_FRAMES = 108_000  # an episode, as in ale-py's vector env


class GymnasiumEnvs:
    """A gymnasium vector env that answers as ale-py's does.

    The async one steps between send and recv, the sync one in recv.
    """

    def __init__(self, vector_env: Any, num_envs: int) -> None:
        self._env = vector_env
        self._env_ids = np.arange(num_envs, dtype=np.int32)
        self.single_action_space = vector_env.single_action_space
        self.single_observation_space = vector_env.single_observation_space
        self.num_envs = num_envs

    def reset(self, *, seed: int) -> tuple[Any, dict[str, Any]]:
        """Reset all envs, each with its own seed."""
        observations, _ = self._env.reset(seed=seed)
        check_pictures(observations, self.num_envs)
        return observations, {"env_id": self._env_ids}

    def step(self, actions: Any) -> Any:
        """Step all envs."""
        return self._answer(self._env.step(actions))

    def send(self, actions: Any) -> None:
        """Send all actions."""
        if hasattr(self._env, "step_async"):
            self._env.step_async(actions)
        else:
            self._actions = actions

    def recv(self) -> Any:
        """Wait for all envs."""
        return self._answer(self._env.step_wait() if hasattr(self._env, "step_wait") else self._env.step(self._actions))

    def close(self) -> None:
        """Close all envs."""
        self._env.close()

    def _answer(self, answer: Any) -> Any:
        return *answer[:4], {"env_id": self._env_ids}


class EnvPoolEnvs:
    """An EnvPool that answers as ale-py's vector env does."""

    def __init__(self, pool: Any, num_envs: int, batch_size: int) -> None:
        self._pool = pool
        self._batch_size = batch_size
        self.single_action_space = pool.action_space
        self.single_observation_space = pool.observation_space
        self.num_envs = num_envs

    def reset(self, *, seed: int) -> tuple[Any, dict[str, Any]]:  # noqa: ARG002 (a pool is seeded when made)
        """Reset all envs; the answer is the first batch of them."""
        self._pool.async_reset()
        observations, *_, info = self.recv()
        check_pictures(observations, self._batch_size)
        return observations, info

    def step(self, actions: Any) -> Any:
        """Send the actions and wait for their rows."""
        self.send(actions)
        return self.recv()

    def send(self, actions: Any) -> None:
        """Send one action for each env of the last batch."""
        self._pool.send(actions.astype(np.int32), self._env_ids)

    def recv(self) -> Any:
        """Wait for the next batch."""
        *answer, info = self._pool.recv()
        self._env_ids = info["env_id"]
        return *answer, {"env_id": self._env_ids}

    def close(self) -> None:
        """Let go of the pool, which closes its envs."""
        self._pool.close()


def check_pictures(observations: Any, num_rows: int) -> None:
    """Raise `VelocityError` unless shape, type and range of a batch are those of ale-py's vector env."""
    expected = (num_rows, *envs.OBSERVATION_SHAPE)
    if observations.shape != expected or observations.dtype != np.uint8:
        raise VelocityError(
            f"a baseline's observations are {observations.dtype} {observations.shape}, expected uint8 {expected}"
        )
    if observations.max() <= 1:
        raise VelocityError("a baseline's observations are scaled to 1, expected bytes up to 255")


def open_gymnasium_sync(game: str, num_envs: int, _num_threads: int, batch_size: int) -> GymnasiumEnvs:
    """Return envs that are stepped one after the other in this process."""
    _require_gymnasium(num_envs, batch_size)
    from gymnasium.vector import SyncVectorEnv

    return GymnasiumEnvs(SyncVectorEnv([functools.partial(make_env, game)] * num_envs), num_envs)


def open_gymnasium_async(game: str, num_envs: int, _num_threads: int, batch_size: int) -> GymnasiumEnvs:
    """Return envs in a process each, with shared memory for their observations."""
    _require_gymnasium(num_envs, batch_size)
    from gymnasium.vector import AsyncVectorEnv

    # Forked: this process has neither threads nor a device yet, and a main module that must not run again.
    vector_env = AsyncVectorEnv([functools.partial(make_env, game)] * num_envs, context="fork")
    return GymnasiumEnvs(vector_env, num_envs)


def open_envpool(game: str, num_envs: int, num_threads: int, batch_size: int) -> EnvPoolEnvs:
    """Return an EnvPool; its emulator is built in, so it says nothing of the installed ale-py."""
    try:
        import envpool
    except ImportError as error:
        raise NotAvailableError(f"EnvPool is not installed: pip install envpool ({error})") from error
    pool = envpool.make_gymnasium(
        f"{_camel(game)}-v5",
        num_envs=num_envs,
        batch_size=batch_size,
        num_threads=num_threads,
        seed=envs.SEED,
        frame_skip=envs.FRAMESKIP,
        stack_num=envs.OBSERVATION_SHAPE[0],
        img_height=envs.OBSERVATION_SHAPE[1],
        img_width=envs.OBSERVATION_SHAPE[2],
        gray_scale=True,
        noop_max=NOOP_MAX,
        use_fire_reset=True,
        episodic_life=False,
        reward_clip=True,
        repeat_action_probability=0.0,
        max_episode_steps=MAX_FRAMES // envs.FRAMESKIP,
    )
    return EnvPoolEnvs(pool, num_envs, batch_size)


def make_env(game: str) -> Any:
    """Return one gymnasium env with the wrappers that give it the vector env's preprocessing."""
    import ale_py
    import gymnasium
    from gymnasium import wrappers

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    env = gymnasium.make(
        f"ALE/{_camel(game)}-v5", frameskip=1, repeat_action_probability=0.0, max_num_frames_per_episode=MAX_FRAMES
    )
    env = wrappers.AtariPreprocessing(env, noop_max=NOOP_MAX, frame_skip=envs.FRAMESKIP, screen_size=84)
    return wrappers.ClipReward(wrappers.FrameStackObservation(_fire_on_reset(env), 4), -1, 1)


def _fire_on_reset(env: Any) -> Any:
    """Return the env, with FIRE pressed after each reset where the game has it."""
    import gymnasium

    meanings = env.unwrapped.get_action_meanings()
    if "FIRE" not in meanings:
        return env
    fire = meanings.index("FIRE")

    class FireOnReset(gymnasium.Wrapper):
        def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
            self.env.reset(**options)
            observations, _, terminated, truncated, info = self.env.step(fire)
            return self.env.reset() if terminated or truncated else (observations, info)

    return FireOnReset(env)


def _require_gymnasium(num_envs: int, batch_size: int) -> None:
    """Raise `NotAvailableError` for half batches, and unless there is OpenCV, with which gymnasium scales pictures."""
    if batch_size != num_envs:
        raise NotAvailableError("gymnasium's vector envs answer with all envs at once: they have no half batches")
    if importlib.util.find_spec("cv2") is None:
        raise NotAvailableError(
            "gymnasium's AtariPreprocessing needs OpenCV, which is not installed: pip install opencv-python-headless"
        )


def _camel(game: str) -> str:
    """Return the name of a game as environments are registered: ms_pacman is MsPacman."""
    return "".join(part.capitalize() for part in game.split("_"))
