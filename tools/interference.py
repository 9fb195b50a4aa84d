"""Show what makes the blocking loop slower than its emulator and its learner one after the other.

    python tools/interference.py --counts 16 64                 on a quiet machine, best with CUDA
    python tools/interference.py --counts 2 --tiny              a smoke test, on any machine

In the loop `step` nothing overlaps, so it should take the emulator's time plus the learner's. What it takes more
is interference. The loop and both sides stand in one process, and their windows take turns: a side that is measured
by itself for long finds warm caches, awake threads and higher clocks than the loop leaves it. Each suspect is taken
away alone, in a fresh process: torch's threads, their spinning, one of the emulator's threads, the memory allocator
that returns pages to the system, and the wait that spins for the device. The suspect whose absence brings the loss
down is guilty. Beside the loss stands what each part of an iteration takes in the loop and in its side alone, and how
many fresh pages an env-step touches.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ale_velocity import envs
from ale_velocity.agents import LEARNERS
from ale_velocity.breakdown import Recorder, phases
from ale_velocity.cell import Cell, open_loop, write_json
from ale_velocity.errors import VelocityError
from ale_velocity.measure import Protocol, warm_up
from ale_velocity.stats import mean_interval

GIGABYTE = 1 << 30
WAITED = "wait for emulator"  # the phase that is the emulator's
BLOCKING_SYNC = 4  # CU_CTX_SCHED_BLOCKING_SYNC of the CUDA driver
PROTOCOL = Protocol("interference", reps=8, iterations=150, warmup=32)
TINY_PROTOCOL = Protocol("interference", reps=2, iterations=8, warmup=4)


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
            print("\n".join(rows(result)), flush=True)
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
    protocol = TINY_PROTOCOL if arguments.tiny else PROTOCOL
    loop = Cell(
        "dqn",
        "step",
        num_envs,
        protocol,
        learner=arguments.learner,
        device="cpu" if arguments.tiny else "auto",
        torch_threads=variant.torch_threads,
        num_threads=max(1, envs.emulator_threads(num_envs) - variant.spare_cpus),
    )
    cells = {
        "loop": loop,
        "learner": dataclasses.replace(loop, backend="fixed"),
        "emulator": dataclasses.replace(loop, agent="emulator", learner="eager"),
    }
    with contextlib.ExitStack() as stack:
        sides = {side: Side(cell, stack) for side, cell in cells.items()}
        for number in range(protocol.reps):
            for side in sides if number % 2 == 0 else reversed(sides):
                sides[side].run_window(protocol.iterations)
    iterations_ms = {side: [window["iteration"] for window in one.windows] for side, one in sides.items()}
    return {
        "variant": name,
        "num_envs": num_envs,
        "threads": {"emulator": sides["loop"].num_threads, "torch": sides["loop"].torch_threads},
        "iterations_ms": iterations_ms,
        "phases_ms": {side: one.median_phases() for side, one in sides.items()},
        "fresh_pages_an_env_step": round(statistics.median(sides["loop"].fresh_pages) / num_envs, 3),
        "lost_percent": [
            round(100 * (1 - (emulator + learner) / whole), 1)
            for whole, learner, emulator in zip(*iterations_ms.values(), strict=True)
        ],
    }


class Side:
    """The loop, or one side of it alone: open, warm, and timed in windows."""

    def __init__(self, cell: Cell, stack: contextlib.ExitStack) -> None:
        self._recorder = Recorder()
        self._loop, self._agent, self.num_threads = stack.enter_context(open_loop(cell, self._recorder))
        self.torch_threads = self._agent.facts().get("torch_threads")
        self.windows: list[dict[str, float]] = []
        self.fresh_pages: list[float] = []
        warm_up(self._loop, self._agent, cell.protocol.warmup)

    def run_window(self, iterations: int) -> None:
        """Keep the milliseconds of an iteration, whole and by its phases, and the pages it touched first."""
        self._agent.drain()
        self._recorder.spans.clear()
        pages, started = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.perf_counter()
        self._loop.run(iterations)
        self._agent.drain()
        elapsed_s = time.perf_counter() - started
        self.fresh_pages.append((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - pages) / iterations)
        parts = phases(self._recorder.spans, elapsed_s, iterations)
        self.windows.append({"iteration": 1000 * elapsed_s / iterations, **parts})

    def median_phases(self) -> dict[str, float]:
        """Return each phase's milliseconds an iteration in the median window."""
        names = [name for name in self.windows[0] if name != "iteration"]
        return {name: round(statistics.median(window[name] for window in self.windows), 3) for name in names}


def sleep_in_synchronise() -> None:
    """Make waits for the device sleep instead of spin; must come before torch opens it."""
    driver = ctypes.CDLL("libcuda.so.1")
    for code in (driver.cuInit(0), driver.cuDevicePrimaryCtxSetFlags_v2(0, BLOCKING_SYNC)):
        if code:
            raise VelocityError(f"the CUDA driver refused the scheduling flag with error {code}")


def rows(result: dict[str, Any]) -> list[str]:
    """Return what the loop lost against one after the other, and each phase in the loop and in its side alone."""
    median = {side: statistics.median(values) for side, values in result["iterations_ms"].items()}
    threads = "threads {emulator}+{torch}".format(**result["threads"])
    lost = mean_interval(result["lost_percent"])
    alone = result["phases_ms"]
    parts = [
        f"{name} {alone['emulator' if name == WAITED else 'learner'].get(name, 0):.3f} -> {in_loop:.3f}"
        for name, in_loop in alone["loop"].items()
    ]
    sides = f"emulator {median['emulator']:.3f} + learner {median['learner']:.3f}, loop {median['loop']:.3f} ms"
    percent = f"{lost.mean:.1f} ± {lost.half_width:.1f}%"
    return [
        f"n={result['num_envs']:<4} {threads:<14} {sides}: lost {percent}  {VARIANTS[result['variant']].suspect}",
        f"       {', '.join(parts)}; {result['fresh_pages_an_env_step']} fresh pages an env-step",
    ]


if __name__ == "__main__":
    sys.exit(main())
