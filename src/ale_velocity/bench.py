"""`ale-velocity bench`: the reference experiment on the stack that is installed here, without asv."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ale_velocity import breakdown as breakdowns
from ale_velocity import envs
from ale_velocity.agents import AGENTS, LEARNERS
from ale_velocity.backends import BACKENDS
from ale_velocity.cell import Cell, write_json
from ale_velocity.errors import VelocityError
from ale_velocity.loops import LOOPS
from ale_velocity.measure import PROTOCOLS, Protocol
from ale_velocity.options import at_least_one
from ale_velocity.process import measure_in_process
from ale_velocity.settings import DEVICES, Settings
from ale_velocity.stats import Interval, mean_interval

if TYPE_CHECKING:
    import argparse

CHART_NAMES = {
    "step": "stepRaw",
    "send_recv": "recvRaw",
    "torch_ops": "torchOpsRaw",
    "double_buffer": "doubleBufferRaw",
    "half_batches": "halfBatchesRaw",
    "quarter_batches": "quarterBatchesRaw",
    "ping_pong": "pingPongRaw",
}
REFERENCE_LOOPS = ["step", "send_recv"]


def add_command(subparsers: Any) -> None:
    """Add `bench`."""
    reference, quick = PROTOCOLS["reference"], PROTOCOLS["quick"]
    parser = subparsers.add_parser(
        "bench",
        help="measure loops on the stack installed here",
        description="Measure env-steps/s of the chosen loops for each env count, each cell in a fresh process, on the "
        "ale-py and torch that are installed here. Prints intervals over windows, ratios and chart constants.",
    )
    parser.set_defaults(run=run)
    number = at_least_one
    parser.add_argument("--agent", choices=AGENTS, default="dqn", help="what is learnt between emulator calls (dqn)")
    parser.add_argument("--backend", choices=BACKENDS, default="ale", help="who advances the envs (ale)")
    parser.add_argument(
        "--learner", choices=LEARNERS, default="eager", help="how the agent's work reaches the device (eager)"
    )
    parser.add_argument(
        "--loops",
        nargs="+",
        choices=LOOPS,
        default=REFERENCE_LOOPS,
        help="how actions reach the emulator (step send_recv)",
    )
    parser.add_argument(
        "--counts", nargs="+", type=number, metavar="N", help=f"env counts ({_words(reference.counts)})"
    )
    parser.add_argument("--reps", type=number, metavar="N", help=f"windows a cell ({reference.reps})")
    parser.add_argument("--bench-steps", type=number, metavar="N", help=f"iterations a window ({reference.iterations})")
    parser.add_argument("--warmup", type=number, metavar="N", help=f"iterations before the clock ({reference.warmup})")
    parser.add_argument("--train-freq", type=number, default=4, metavar="N", help="iterations an update (4)")
    parser.add_argument("--batch-size", type=number, default=32, metavar="N", help="transitions a minibatch (32)")
    parser.add_argument(
        "--buffer-cap", type=number, default=10_000, metavar="N", help="transitions the replay holds (10000)"
    )
    parser.add_argument("--device", choices=DEVICES, help="where the learner computes (ALE_VELOCITY_DEVICE, or auto)")
    parser.add_argument("--num-threads", type=number, metavar="N", help="the emulator's threads (16, within the CPUs)")
    parser.add_argument(
        "--torch-threads", type=number, metavar="N", help="torch's threads (ALE_VELOCITY_TORCH_THREADS, or torch's own)"
    )
    parser.add_argument("--game", help="ROM name in snake_case, such as ms_pacman (ALE_VELOCITY_GAME, or pong)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"counts {_words(quick.counts)}, reps {quick.reps}, bench-steps {quick.iterations}, warmup {quick.warmup}",
    )
    parser.add_argument(
        "--breakdown", action="store_true", help="then run one more window a cell, and print where its time goes"
    )
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="with --breakdown: write the calls' times for ui.perfetto.dev"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every window, rewritten after each cell")


def run(arguments: argparse.Namespace) -> int:
    """Measure all cells, print them as they come, then the chart constants; keep what was measured on any stop."""
    settings = Settings.from_environ()
    arguments.device = arguments.device or settings.device
    arguments.game = arguments.game or settings.game
    arguments.torch_threads = arguments.torch_threads or settings.torch_threads
    protocol = _protocol(arguments)
    check_arguments(arguments, protocol)
    cells = [
        Cell(
            arguments.agent,
            loop,
            num_envs,
            protocol,
            game=arguments.game,
            device=arguments.device,
            backend=arguments.backend,
            learner=arguments.learner,
            num_threads=arguments.num_threads,
            breakdown=arguments.breakdown,
            torch_threads=arguments.torch_threads,
            train_freq=arguments.train_freq,
            batch_size=arguments.batch_size,
            buffer_cap=arguments.buffer_cap,
        )
        for num_envs in protocol.counts
        for loop in arguments.loops
    ]
    results: list[dict[str, Any]] = []
    traces: dict[str, list[list[Any]]] = {}
    failures = 0
    for number, cell in enumerate(cells, start=1):
        name = f"{cell.agent} {cell.loop} n={cell.num_envs}"
        result = measure_with_progress(cell, label=f"[{number}/{len(cells)}] {name}")
        traces[name] = result.pop("trace", [])
        results.append(result)
        failures += result.get("failed", False)
        if arguments.json:
            write_json(arguments.json, {"schema": 1, "cells": results})
        if cell.loop == arguments.loops[-1]:
            print(_row(results[-len(arguments.loops) :], arguments), flush=True)
        if breakdown := result.get("breakdown"):
            print(f"{name}\n{breakdowns.table(breakdown)}", flush=True)
    if arguments.trace:
        write_json(arguments.trace, breakdowns.chrome_trace(traces))
    words = f"env-steps/s of {arguments.game}, {envs.FRAMESKIP} frames each"
    print(f"\n{words}; ± is the 95% interval over the windows of one process.\n")
    print(chart_constants(results))
    return 2 if failures else 0


def check_arguments(arguments: argparse.Namespace, protocol: Protocol) -> None:
    """Raise `VelocityError` for options that cannot work, before any environment opens."""
    if arguments.batch_size > arguments.buffer_cap:
        raise VelocityError(f"--batch-size {arguments.batch_size} does not fit --buffer-cap {arguments.buffer_cap}")
    if max(protocol.counts) > arguments.buffer_cap:
        raise VelocityError(f"--counts {max(protocol.counts)} does not fit --buffer-cap {arguments.buffer_cap}")
    if arguments.json and not arguments.json.absolute().parent.is_dir():
        raise VelocityError(f"--json {arguments.json}: there is no folder {arguments.json.absolute().parent}")
    if arguments.trace and not arguments.breakdown:
        raise VelocityError("--trace needs --breakdown, whose times it holds")
    if arguments.trace and not arguments.trace.absolute().parent.is_dir():
        raise VelocityError(f"--trace {arguments.trace}: there is no folder {arguments.trace.absolute().parent}")
    if arguments.backend == "ale":
        envs.require_vector_env()
    envs.check_game(arguments.game)
    if arguments.device == "cuda":
        from ale_velocity.agents.torch_device import prepare_torch

        prepare_torch("cuda", threads=None)


def measure_with_progress(cell: Cell, label: str) -> dict[str, Any]:
    """Measure a cell in a fresh process, with its progress, and why it has no result, on stderr after `label`."""

    def say(line: str) -> None:
        print(f"{label}: {line}", file=sys.stderr, flush=True)

    result = measure_in_process(cell, say)
    if "reason" in result:
        say(f"{'failed' if result['failed'] else 'n/a'}: {result['reason']}")
    return result


def chart_constants(results: list[dict[str, Any]]) -> str:
    """Return a JavaScript array a loop, of `{ n, thr, thr_lo, thr_hi }` in whole env-steps/s."""
    arrays: dict[str, list[str]] = {}
    for result in results:
        points = arrays.setdefault(CHART_NAMES[result["cell"]["loop"]], [])
        if interval := _interval(result):
            points.append(
                f"  {{ n: {result['cell']['num_envs']}, thr: {interval.mean:.0f}, "
                f"thr_lo: {interval.low:.0f}, thr_hi: {interval.high:.0f} }},\n"
            )
    return "\n".join(f"const {name} = [\n{''.join(points)}];" for name, points in arrays.items())


def _interval(result: dict[str, Any]) -> Interval | None:
    windows = result.get("windows")
    return mean_interval([window["rows"] / window["elapsed_s"] for window in windows]) if windows else None


def _row(results: list[dict[str, Any]], arguments: argparse.Namespace) -> str:
    """One count: each loop with its interval, the ratio to the first loop, and the replay ratio."""
    num_envs = results[0]["cell"]["num_envs"]
    intervals = {result["cell"]["loop"]: _interval(result) for result in results}
    parts = [f"n={num_envs:<4}"]
    first = intervals[arguments.loops[0]]
    for loop, interval in intervals.items():
        if interval is None:
            parts.append(f"{loop} n/a")
            continue
        text = f"{loop} {interval.mean:,.0f} ± {interval.half_width:,.0f}"
        if first and loop != arguments.loops[0]:
            text += f" ({interval.mean / first.mean:.2f}x {arguments.loops[0]})"
        parts.append(text)
    ratios = [
        result["facts"]["updates_per_env_step"]
        for result in results
        if "updates_per_env_step" in result.get("facts", {})
    ]
    if ratios:
        parts.append(f"{ratios[0]:.3g} updates/env-step")
    return "  ".join(parts)


def _protocol(arguments: argparse.Namespace) -> Protocol:
    base = PROTOCOLS["quick" if arguments.quick else "reference"]
    given = {
        "reps": arguments.reps,
        "iterations": arguments.bench_steps,
        "warmup": arguments.warmup,
        "counts": tuple(dict.fromkeys(arguments.counts)) if arguments.counts else None,
    }
    changed = {name: value for name, value in given.items() if value is not None}
    return dataclasses.replace(base, **changed)


def _words(values: tuple[int, ...]) -> str:
    return " ".join(map(str, values))
