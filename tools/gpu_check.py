"""Check and measure everything that needs a CUDA machine, in less than eight minutes.

    python tools/gpu_check.py OUT            on a CUDA machine
    python tools/gpu_check.py OUT --tiny     a smoke test of this script, on any machine

Each part runs in a process of its own and leaves OUT/PART.json, rewritten after each cell, so that a stop loses
little. A part that runs out of time is stopped and says so. At the end the table is printed, and written to
OUT/summary.txt; `python tools/gpu_check.py OUT --summary` prints it again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ale_velocity.cell import Cell, write_json
from ale_velocity.errors import VelocityError
from ale_velocity.loops import LOOPS
from ale_velocity.measure import Protocol
from ale_velocity.overlap import run_overlap

ROOT = Path(__file__).parent.parent
BUDGET_S = 465  # of all parts together
PARTS = ("checks", "graphed", "fidelity", "eager", "ppo")  # the most needed first
TESTS = ("test_graphed.py", "test_torch_registration.py", "test_same_transitions.py", "test_ppo.py")
TABLE_LOOPS = ("step", "send_recv", "torch_ops", "half_batches", "quarter_batches", "ping_pong")
PPO_COUNTS = (16, 64)
PPO_LOOPS = ("step", "send_recv", "half_batches")
FIDELITY_PAIRS = 10
# Iterations of a window: about half a second each on an H200 with 16 cores.
ITERATIONS = {1: 400, 16: 250, 64: 125, 256: 48}
TINY_ITERATIONS = {2: 12}


def main() -> int:
    """Run all parts, or the one asked for, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder for the results")
    parser.add_argument("--tiny", action="store_true", help="a few env-steps on the CPU")
    parser.add_argument("--part", choices=PARTS, help="run this part in this process")
    parser.add_argument("--summary", action="store_true", help="print what OUT holds, and measure nothing")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.part:
        run_part(arguments.part, arguments.out, tiny=arguments.tiny)
        return 0
    if not arguments.summary:
        run_parts(arguments.out, tiny=arguments.tiny)
    text = summary(arguments.out)
    (arguments.out / "summary.txt").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


def run_parts(out: Path, *, tiny: bool) -> None:
    """Run each part in a process of its own within what is left of the budget."""
    deadline = time.monotonic() + BUDGET_S
    for part in PARTS:
        started = time.monotonic()
        command = [sys.executable, __file__, str(out), "--part", part, *(["--tiny"] if tiny else [])]
        try:
            done = subprocess.run(command, timeout=max(1.0, deadline - started), check=False)
            outcome = f"exit code {done.returncode}"
        except subprocess.TimeoutExpired:
            outcome = "stopped: out of time"
        print(f"{part}: {outcome} after {time.monotonic() - started:.0f} s", flush=True)


def run_part(part: str, out: Path, *, tiny: bool) -> None:
    """Run one part, rewriting its file after each result."""
    results: list[dict[str, Any]] = []
    iterations = TINY_ITERATIONS if tiny else ITERATIONS
    measure_part = {"checks": checks, "fidelity": fidelities}.get(part, table)
    for result in measure_part(part, iterations, tiny=tiny):
        results.append(result)
        write_json(out / f"{part}.json", results)
        print(f"{part}: {json.dumps({key: value for key, value in result.items() if key != 'cells'})}", flush=True)


def checks(_part: str, _iterations: dict[int, int], *, tiny: bool) -> Any:
    """Run the tests that mean more with a CUDA device, warnings of other versions of torch let through."""
    for name in TESTS[:1] if tiny else TESTS:
        command = [sys.executable, "-m", "pytest", "-q", "-W", "default", "--no-header", str(ROOT / "tests" / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR", "E  "))]
        last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1:]
        yield {"tests": name, "code": done.returncode, "last_line": "".join(last), "failed": failed}


def table(part: str, iterations: dict[int, int], *, tiny: bool) -> Any:
    """Yield each count's loops with their ceilings, in env-steps/s, best window and mean."""
    import torch

    agent, learners, loops = "dqn", [part], TABLE_LOOPS
    if part == "ppo":
        agent, learners, loops = "ppo", ["graphed", "eager"], PPO_LOOPS
        iterations = dict.fromkeys([2] if tiny else PPO_COUNTS, 128)  # one rollout a window
    for learner in learners:
        for num_envs in iterations:
            for loop in loops:
                # A second shape in one process would be compiled for all sizes; a real cell has one.
                torch._dynamo.reset()  # noqa: SLF001 (no public name)
                protocol = Protocol("gpu_check", reps=3, iterations=iterations[num_envs], warmup=32)
                device = "cpu" if tiny else "cuda"
                cell = Cell(agent, loop, num_envs, protocol, learner=learner, device=device)
                head = {"agent": agent, "learner": learner, "loop": loop, "num_envs": num_envs}
                try:
                    overlap = run_overlap(cell)
                except VelocityError as error:
                    yield {**head, "reason": str(error)}
                    continue
                parts = {"loop": overlap.loop, "emulator": overlap.emulator, "learner": overlap.learner}
                rates = {name: round(statistics.fmean(result.samples)) for name, result in parts.items()}
                efficiency = round(statistics.fmean(overlap.samples), 1)
                yield {
                    **head,
                    "env_steps_per_second": rates,
                    "sequential": round(overlap.sequential),
                    "overlap_percent": efficiency,
                    "torch_threads": overlap.loop.facts["torch_threads"],
                    "cells": overlap.to_json(),
                }


def fidelities(_part: str, iterations: dict[int, int], *, tiny: bool) -> Any:
    """Yield the package's loops against bare ones, run in alternation."""
    import fidelity

    pairs = 2 if tiny else FIDELITY_PAIRS
    for num_envs in list(iterations)[:3]:
        for loop in fidelity.LOOPS:
            yield fidelity.compared(loop, num_envs, pairs=pairs, iterations=iterations[num_envs])


def summary(out: Path) -> str:
    """Return the results of a folder as text."""
    found = {part: json.loads((out / f"{part}.json").read_text()) for part in PARTS if (out / f"{part}.json").exists()}
    lines = [
        f"{one['tests']}: {'passed' if one['code'] == 0 else 'FAILED'}: {one['last_line']}"
        for one in found.get("checks", [])
    ]
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in (row for part in ("eager", "graphed", "ppo") for row in found.get(part, [])):
        groups.setdefault((row["agent"], row["learner"], row["num_envs"]), []).append(row)
    for (agent, learner, num_envs), rows in groups.items():
        lines += ["", f"{agent} {learner} n={num_envs}", *map(_row, rows)]
        if note := _limit(rows, groups.get((agent, "eager", num_envs), [])):
            lines.append(f"  {note}")
    lines.append("")
    if "fidelity" in found:
        import fidelity

        lines += map(fidelity.row, found["fidelity"])
    return "\n".join(lines)


def _limit(rows: list[dict[str, Any]], reference_rows: list[dict[str, Any]]) -> str:
    """The best loop against the half-batch emulator ceiling, and against the blocking loop of the eager learner."""
    measured = {row["loop"]: row["env_steps_per_second"] for row in rows if "reason" not in row}
    if not measured:
        return ""
    best = max(measured, key=lambda loop: measured[loop]["loop"])
    rate = measured[best]["loop"]
    note = f"best: {best} {rate:,}"
    if "half_batches" in measured:
        ceiling = measured["half_batches"]["emulator"]
        note += f", {100 * rate / ceiling:.0f}% of the half-batch emulator ceiling {ceiling:,}"
    for row in reference_rows:
        if row["loop"] == "step" and "reason" not in row:
            note += f", {rate / row['env_steps_per_second']['loop']:.2f}x the eager blocking loop"
    return note


def _row(row: dict[str, Any]) -> str:
    if "reason" in row:
        return f"  {row['loop']:<13} n/a: {row['reason']}"
    rates = row["env_steps_per_second"]
    return (
        f"  {row['loop']:<13} {rates['loop']:>7,} env-steps/s  emulator {rates['emulator']:>7,}  "
        f"learner {rates['learner']:>7,}  one after the other {row['sequential']:>7,}  "
        f"overlap {row['overlap_percent']:>5}%"
    )


if __name__ == "__main__":
    assert set(TABLE_LOOPS) <= set(LOOPS)  # noqa: S101 (a renamed loop must not be found out on the last machine)
    sys.exit(main())
