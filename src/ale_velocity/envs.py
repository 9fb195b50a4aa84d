"""Open the vector env of whichever ale-py is installed: the only place that looks at its version."""

from __future__ import annotations

import difflib
import os
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.version import Version

from ale_velocity.errors import NotAvailableError, VelocityError

FRAMESKIP = 5  # emulator frames an env-step, from workload.md's reference experiment
OBSERVATION_SHAPE = (4, 84, 84)  # four grayscale frames of one env, uint8
MAX_THREADS = 16  # emulator threads of the reference experiment
VECTOR_ENV_SINCE = "0.11.0"
DOUBLE_BUFFER_SINCE = "0.11.1"
SEED = 1  # not 0: ale-py 0.11.0 ignores seed 0 (ALE pull 603)


def open_vector_env(game: str, num_envs: int, num_threads: int, batch_size: int | None = None) -> Any:
    """Return an `AtariVectorEnv`; observations are uint8 `(batch_size, 4, 84, 84)`, everything unsaid is default.

    `batch_size` is `num_envs` unless given. Raises `NotAvailableError` where the installed ale-py has no vector
    env, `VelocityError` for an unknown game.
    """
    require_vector_env()
    check_game(game)
    import ale_py
    from ale_py.vector_env import AtariVectorEnv

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return AtariVectorEnv(
        game=game,
        num_envs=num_envs,
        batch_size=num_envs if batch_size is None else batch_size,
        frameskip=FRAMESKIP,
        num_threads=num_threads,
    )


def require_vector_env() -> None:
    """Raise `NotAvailableError` with the reason unless the installed ale-py has a vector env."""
    try:
        version = metadata.version("ale-py")
    except metadata.PackageNotFoundError as error:
        raise NotAvailableError("ale-py is not installed") from error
    import ale_py

    # Looked for as a file: importing it would also need gymnasium, and hide the reason.
    if not (Path(ale_py.__file__).parent / "vector_env.py").exists():
        raise NotAvailableError(f"ale-py {version} has no AtariVectorEnv (it came with {VECTOR_ENV_SINCE})")


def has_vector_env(version: str) -> bool:
    """Whether this version of ale-py has a vector env."""
    return Version(version) >= Version(VECTOR_ENV_SINCE)


def require_double_buffer() -> None:
    """Raise `NotAvailableError` for ale-py 0.11.0, whose half batches hold wrong row counts (ALE pull 612).

    Two vector envs in ping-pong would work there; they are n/a too, so that `double_buffer` is one thing in a history.
    """
    version = metadata.version("ale-py")
    if Version(version) < Version(DOUBLE_BUFFER_SINCE):
        raise NotAvailableError(
            f"double buffering needs ale-py {DOUBLE_BUFFER_SINCE} or later: half batches of ale-py {version} hold "
            "wrong row counts (ALE pull 612)"
        )


def check_game(game: str) -> None:
    """Raise `VelocityError`, with the nearest names, unless the installed ale-py packages that game's ROM."""
    from ale_py import roms

    known = roms.get_all_rom_ids()
    if game not in known:
        near = difflib.get_close_matches(game, known) or ["pong"]
        raise VelocityError(f"ale-py has no ROM '{game}'; did you mean {' or '.join(near)}?")


def num_actions(game: str) -> int:
    """Return how many actions a game has (Pong 6, Ms. Pac-Man 9): those that every vector env offers."""
    check_game(game)
    import ale_py
    from ale_py import roms

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.loadROM(roms.get_rom_path(game))
    return len(ale.getMinimalActionSet())


def emulator_threads(num_envs: int, wanted: int | None = None) -> int:
    """Return the emulator's thread count for `num_envs`: the wanted or the reference experiment's, within the CPUs.

    Clamped here since ale-py clamps an explicit value only from 0.12 on: unclamped it would be other work.
    """
    return min(num_envs, wanted or MAX_THREADS, usable_cpus())


def usable_cpus(cgroup_root: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many CPUs this process may use: its affinity, and its cgroup's CPU quota rounded up."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_quota(cgroup_root)
    return affinity if quota is None else max(1, min(affinity, -int(-quota // 1)))


def cgroup_quota(root: Path) -> float | None:
    """Return the CPUs granted by a cgroup version 2 or 1 quota as seen from inside it, None without one."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (root / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu" / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if quota in ("max", "-1"):
        return None
    return int(quota) / int(period)
