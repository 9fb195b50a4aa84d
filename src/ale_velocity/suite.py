"""What the asv benchmarks call: checks before a cell, and the measurement in the form that asv keeps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ale_velocity import envs, stack
from ale_velocity.cell import Cell, append_record, run_cell, use_private_compile_cache
from ale_velocity.errors import NotAvailableError
from ale_velocity.measure import PROTOCOLS
from ale_velocity.overlap import run_overlap
from ale_velocity.settings import PREFIX, Settings

if TYPE_CHECKING:
    from collections.abc import Callable


# Each baseline's backend and loop.
BASELINES = {
    "gymnasium_sync": ("gymnasium_sync", "step"),
    "gymnasium_async": ("gymnasium_async", "step"),
    "envpool": ("envpool", "step"),
    "envpool_half_batches": ("envpool", "half_batches"),
}


def require(num_envs: int, *, vector_env: bool = True) -> None:
    """Raise asv's skip, with the reason, where this cell is n/a; `VelocityError` where it would measure wrongly.

    A baseline needs no vector env of ale-py.
    """
    from asv_runner.benchmarks.mark import SkipNotImplemented

    settings = Settings.from_environ()
    stack.check_pins()
    protocol = PROTOCOLS[settings.protocol]
    if num_envs not in protocol.counts:
        counts = ", ".join(map(str, protocol.counts))
        raise SkipNotImplemented(f"the {protocol.name} protocol measures {counts} envs")
    try:
        if vector_env:
            envs.require_vector_env()
    except NotAvailableError as error:
        raise SkipNotImplemented(str(error)) from error
    envs.check_game(settings.game)


def measure_cell(
    agent: str, loop: str, num_envs: int, *, backend: str = "ale", learner: str = "eager"
) -> dict[str, Any]:
    """Measure a cell with the settings of the environment; return env-steps/s of each window as asv's samples."""
    return _measure(run_cell, agent, loop, num_envs, backend=backend, learner=learner)


def measure_baseline(baseline: str, num_envs: int) -> dict[str, Any]:
    """Measure a baseline's emulator alone; return env-steps/s of each window as asv's samples."""
    backend, loop = BASELINES[baseline]
    return _measure(run_cell, "emulator", loop, num_envs, backend=backend)


def measure_overlap(agent: str, loop: str, num_envs: int, *, learner: str = "eager") -> dict[str, Any]:
    """Measure a cell and its ceilings; return each window's percent of the lower ceiling as asv's samples."""
    return _measure(run_overlap, agent, loop, num_envs, learner=learner)


def _measure(run: Callable[[Cell], Any], agent: str, loop: str, num_envs: int, **kind: Any) -> dict[str, Any]:
    """Run a cell, keep its record, and return its samples.

    asv keeps median, interval and samples of a `track_` result of this form (a test pins that it does).
    """
    from asv_runner.benchmarks.mark import SkipNotImplemented

    settings = Settings.from_environ()
    use_private_compile_cache()
    cell = Cell(
        agent,
        loop,
        num_envs,
        PROTOCOLS[settings.protocol],
        game=settings.game,
        device=settings.device,
        torch_threads=settings.torch_threads,
        **kind,
    )
    try:
        result = run(cell)
    except NotAvailableError as error:
        raise SkipNotImplemented(str(error)) from error
    if records := os.environ.get(PREFIX + "RECORDS"):
        commit = {"commit": os.environ.get("ASV_COMMIT"), "environment": os.environ.get("ASV_ENV_NAME")}
        append_record(Path(records), {**commit, **result.to_json()})
    return {"samples": result.samples, "number": 1}
