"""Show what makes the blocking loop slower than its emulator and its learner one after the other.

    python tools/interference.py --counts 16 64                 on a quiet machine, best with CUDA
    python tools/interference.py --counts 2 --tiny              a smoke test, on any machine

In the loop `step` nothing overlaps, so it should take the emulator's time plus the learner's. What it takes more
is interference. Each suspect is taken away alone, in a fresh process: torch's threads, their spinning, one of the
emulator's threads, the memory allocator that returns pages to the system after each batch, and the wait that spins
for the device. The suspect whose absence brings the loss down is guilty.

One suspect cannot be taken away: in the loop each side rests while the other works, and wakes up late and cold. So
both are measured alone a second time, with rests as long as the other's iteration, which do not count.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ale_velocity import envs
from ale_velocity.agents import LEARNERS
from ale_velocity.breakdown import Recorder
from ale_velocity.cell import Cell, open_loop, write_json
from ale_velocity.errors import VelocityError
from ale_velocity.measure import Protocol, warm_up
from ale_velocity.overlap import run_overlap

if TYPE_CHECKING:
    from collections.abc import Callable

GIGABYTE = 1 << 30
BLOCKING_SYNC = 4  # CU_CTX_SCHED_BLOCKING_SYNC of the CUDA driver
PROTOCOL = Protocol("interference", reps=5, iterations=150, warmup=32)
TINY_PROTOCOL = Protocol("interference", reps=1, iterations=8, warmup=4)


@dataclass(frozen=True)
class Variant:
    """What is different from how things are by default."""

    suspect: str
    torch_threads: int | None = None
    spare_cpus: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    blocking_sync: bool = False


VARIANTS = {
    "default": Variant("nothing taken away"),
    "torch1": Variant("torch's CPU threads: 1", torch_threads=1),
    "passive": Variant(
        "the spinning of torch's idle CPU threads: they sleep", environment={"OMP_WAIT_POLICY": "PASSIVE"}
    ),
    "spare1": Variant("the emulator's threads: one CPU left to the loop", spare_cpus=1),
    "pages": Variant(
        "fresh pages: the allocator keeps what it has",
        environment={"MALLOC_MMAP_THRESHOLD_": str(GIGABYTE), "MALLOC_TRIM_THRESHOLD_": str(GIGABYTE)},
    ),
    "sleep": Variant("the spinning wait for the device: it sleeps", blocking_sync=True),
    "all": Variant(
        "all of these",
        torch_threads=1,
        spare_cpus=1,
        environment={"MALLOC_MMAP_THRESHOLD_": str(GIGABYTE), "MALLOC_TRIM_THRESHOLD_": str(GIGABYTE)},
        blocking_sync=True,
    ),
}


def main() -> int:
    """Measure each variant in a process of its own and print how much each loses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", nargs="+", type=int, default=[16, 64], metavar="N", help="env counts")
    parser.add_argument("--learner", choices=LEARNERS, default="eager")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--tiny", action="store_true", help="a few env-steps on the CPU")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all windows")
    parser.add_argument("--measure", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        write_json(arguments.measure, measured(arguments))
        return 0
    results = []
    for num_envs in arguments.counts:
        for name in arguments.variants:
            result = in_process(name, num_envs, arguments)
            results.append(result)
            print(row(result), flush=True)
            if arguments.json:
                write_json(arguments.json, results)
    return 0


def in_process(name: str, num_envs: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure one variant in a fresh process with its environment."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "result.json"
        options = ["--counts", str(num_envs), "--learner", arguments.learner]
        command = [sys.executable, __file__, *options, "--variants", name, "--measure", str(kept)]
        if arguments.tiny:
            command.append("--tiny")
        subprocess.run(command, check=True, env={**os.environ, **VARIANTS[name].environment})
        return json.loads(kept.read_text(encoding="utf-8"))


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure the only variant and count of the arguments in this process."""
    (name,), (num_envs,) = arguments.variants, arguments.counts
    variant = VARIANTS[name]
    if variant.blocking_sync and not arguments.tiny:
        sleep_in_synchronise()
    cell = Cell(
        "dqn",
        "step",
        num_envs,
        TINY_PROTOCOL if arguments.tiny else PROTOCOL,
        learner=arguments.learner,
        device="cpu" if arguments.tiny else "auto",
        torch_threads=variant.torch_threads,
        num_threads=max(1, envs.emulator_threads(num_envs) - variant.spare_cpus),
    )
    overlap = run_overlap(cell)
    median = {part: statistics.median(getattr(overlap, part).samples) for part in ("emulator", "learner", "loop")}
    iteration_s = {part: num_envs / rate for part, rate in median.items()}
    rested = {
        "emulator": rested_emulator(cell, iteration_s["learner"]),
        "learner": rested_learner(cell, iteration_s["emulator"]),
    }
    return {
        "variant": name,
        "num_envs": num_envs,
        "env_steps_per_second": {name: round(rate, 1) for name, rate in median.items()},
        "rested": {name: round(rate, 1) for name, rate in rested.items()},
        "lost_percent": lost(median["loop"], median),
        "lost_percent_by_rested": lost(median["loop"], rested),
        "overlap": overlap.to_json(),
    }


def lost(loop: float, alone: dict[str, float]) -> float:
    """Return the percent by which a loop is slower than its two sides alone, one after the other."""
    return round(100 * (1 - loop * (1 / alone["emulator"] + 1 / alone["learner"])), 1)


def rested_emulator(cell: Cell, rest_s: float) -> float:
    """Return env-steps/s of the emulator alone, which rests after each step while this thread spins like a learner."""
    return rested(dataclasses.replace(cell, agent="emulator"), lambda: spin(rest_s), "learn")


def rested_learner(cell: Cell, rest_s: float) -> float:
    """Return env-steps/s of the learner alone that sleeps in each step, as it does while it waits for the emulator."""
    return rested(dataclasses.replace(cell, backend="fixed"), lambda: time.sleep(rest_s), "step")


def rested(cell: Cell, rest: Callable[[], None], where: str) -> float:
    """Run a cell's windows with a rest in each call of the agent's `learn` or the envs' `step`.

    Return the median of rows over seconds without the rests.
    """
    recorder = Recorder()
    timed_rest = recorder.timed("rest", rest)
    rates = []
    with open_loop(cell, recorder) as (loop, agent, _):
        resting = loop.agent if where == "learn" else loop.envs
        method = getattr(resting, where)
        setattr(resting, where, lambda argument: (timed_rest(), method(argument))[1])
        warm_up(loop, agent, cell.protocol.warmup)
        for _ in range(cell.protocol.reps):
            agent.drain()
            recorder.spans.clear()
            started = time.perf_counter()
            rows = loop.run(cell.protocol.window_iterations(cell.num_envs))
            agent.drain()
            elapsed_s = time.perf_counter() - started
            rested_s = sum(span.end_s - span.start_s for span in recorder.spans if span.name == "rest")
            rates.append(rows / (elapsed_s - rested_s))
        loop.close()
    return statistics.median(rates)


def spin(seconds: float) -> None:
    """Keep this thread busy."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def sleep_in_synchronise() -> None:
    """Make waits for the device sleep instead of spin; must come before torch opens it."""
    driver = ctypes.CDLL("libcuda.so.1")
    for code in (driver.cuInit(0), driver.cuDevicePrimaryCtxSetFlags_v2(0, BLOCKING_SYNC)):
        if code:
            raise VelocityError(f"the CUDA driver refused the scheduling flag with error {code}")


def row(result: dict[str, Any]) -> str:
    """One line: the rates of median windows, and what the loop lost against one after the other."""
    rates, rested_rates = result["env_steps_per_second"], result["rested"]
    facts = result["overlap"]["loop"]["facts"]
    threads = f"threads {facts['num_threads']}+{facts['torch_threads']}"
    sides = "  ".join(f"{side} {rates[side]:>8,.0f} (rested {rested_rates[side]:>8,.0f})" for side in rested_rates)
    return (
        f"n={result['num_envs']:<4} {threads:<14} {sides}  loop {rates['loop']:>8,.0f}  "
        f"lost {result['lost_percent']:>5}% (against rested {result['lost_percent_by_rested']:>5}%)  "
        f"{VARIANTS[result['variant']].suspect}"
    )


if __name__ == "__main__":
    sys.exit(main())
