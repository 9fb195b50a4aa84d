"""What the asv benchmarks call: checks before a cell, and the measurement in the form that asv keeps."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ale_velocity import envs, stack
from ale_velocity.cell import Cell, append_record, cpu_time_gap, run_cell, use_private_compile_cache, with_behaviour
from ale_velocity.errors import NotAvailableError
from ale_velocity.measure import PROTOCOLS
from ale_velocity.overlap import run_overlap
from ale_velocity.settings import PREFIX, Settings
from ale_velocity.shared_run import run_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from ale_velocity.measure import Protocol


# Each baseline's backend and loop.
BASELINES = {
    "gymnasium_sync": ("gymnasium_sync", "step"),
    "gymnasium_async": ("gymnasium_async", "step"),
    "envpool": ("envpool", "step"),
    "envpool_half_batches": ("envpool", "half_batches"),
}


def require(num_envs: int, *, vector_env: bool = True) -> None:
    """Raise asv's skip, with the reason, where this cell is n/a; `VelocityError` where it would measure wrongly.

    The reason is recorded too. A baseline needs no vector env of ale-py.
    """
    from asv_runner.benchmarks.mark import SkipNotImplemented

    settings = Settings.from_environ()
    stack.check_pins()
    try:
        _require(num_envs, PROTOCOLS[settings.protocol], vector_env=vector_env)
    except NotAvailableError as error:
        _record({"reason": str(error)})
        raise SkipNotImplemented(str(error)) from error
    envs.check_game(settings.game)


def _require(num_envs: int, protocol: Protocol, *, vector_env: bool) -> None:
    if num_envs not in protocol.counts:
        counts = ", ".join(map(str, protocol.counts))
        raise NotAvailableError(f"the {protocol.name} protocol measures {counts} envs")
    if vector_env:
        envs.require_vector_env()


def measure_cell(
    agent: str, loop: str, num_envs: int, *, backend: str = "ale", learner: str = "eager"
) -> dict[str, Any]:
    """Measure a cell with the settings of the environment; return env-steps/s of each window as asv's samples.

    asv keeps median, interval and samples of a `track_` result of this form (a test pins that it does).
    """
    cell = _cell(agent, loop, num_envs, backend=backend, learner=learner)
    return {"samples": run_once(cell, "wall", lambda: _run(run_cell, cell))["samples"], "number": 1}


def measure_cell_cpu(agent: str, loop: str, num_envs: int) -> dict[str, Any]:
    """As `measure_cell`, in env-steps a CPU-second: from the same run; a skip where CPU time means nothing."""
    cell = _cell(agent, loop, num_envs)
    result = run_once(cell, "cpu", lambda: _run(run_cell, cell))
    if gap := cpu_time_gap(result["facts"]):
        raise _skip(gap)
    return {"samples": result["cpu_samples"], "number": 1}


def measure_baseline(baseline: str, num_envs: int) -> dict[str, Any]:
    """Measure a baseline's emulator alone; return env-steps/s of each window as asv's samples."""
    backend, loop = BASELINES[baseline]
    return {"samples": _run(run_cell, _cell("emulator", loop, num_envs, backend=backend))["samples"], "number": 1}


def measure_overlap(agent: str, loop: str, num_envs: int) -> dict[str, Any]:
    """Measure a cell and its ceilings; return each window's percent of the lower ceiling as asv's samples."""
    return {"samples": _run(run_overlap, _cell(agent, loop, num_envs))["samples"], "number": 1}


def _cell(agent: str, loop: str, num_envs: int, **kind: Any) -> Cell:
    """Return a cell with the settings of the environment."""
    settings = Settings.from_environ()
    return Cell(
        agent,
        loop,
        num_envs,
        PROTOCOLS[settings.protocol],
        game=settings.game,
        device=settings.device,
        torch_threads=settings.torch_threads,
        **kind,
    )


def _run(measured: Callable[[Cell], Any], cell: Cell) -> dict[str, Any]:
    """Measure, and append the whole result to the records."""
    use_private_compile_cache()
    try:
        result = with_behaviour(measured(cell).to_json(), cell)
    except NotAvailableError as error:
        _record({"cell": dataclasses.asdict(cell), "reason": str(error)})
        raise _skip(str(error)) from error
    except Exception as error:
        # asv prints the error and stores none: the record keeps it for the release's page.
        _record({"cell": dataclasses.asdict(cell), "reason": f"{type(error).__name__}: {error}"})
        raise
    _record(result)
    return result


def _skip(reason: str) -> Exception:
    """Return asv's skip, with the reason printed in the form that asv has for a setup: it prints none for a body."""
    from asv_runner.benchmarks.mark import SkipNotImplemented

    skip = SkipNotImplemented(reason)
    print(f"asv: skipped: {skip!r} ", flush=True)
    return skip


def _record(values: dict[str, Any]) -> None:
    if records := os.environ.get(PREFIX + "RECORDS"):
        run = {
            "command": os.environ.get(PREFIX + "COMMAND"),
            "benchmark": os.environ.get(PREFIX + "BENCHMARK"),
            "commit": os.environ.get("ASV_COMMIT"),
            "environment": os.environ.get("ASV_ENV_NAME"),
        }
        append_record(Path(records), {**run, **values})
