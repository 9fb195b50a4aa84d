"""Show what makes the blocking loop slower than its emulator and its learner one after the other.

    python tools/interference.py --counts 16 64                 on a quiet machine, best with CUDA
    python tools/interference.py --counts 2 --tiny              a smoke test, on any machine

In the loop `step` nothing overlaps, so it should take the emulator's time plus the learner's. What it takes more
is interference. Each suspect is taken away alone, in a fresh process: torch's threads, their spinning, one of the
emulator's threads, the memory allocator that returns pages to the system after each batch, and the wait that spins
for the device. The suspect whose absence brings the loss down is guilty.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ale_velocity import envs
from ale_velocity.agents import LEARNERS
from ale_velocity.cell import Cell, write_json
from ale_velocity.errors import VelocityError
from ale_velocity.measure import Protocol
from ale_velocity.overlap import run_overlap

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
    parser.add_argument("--loop", default="step", help="other loops lose against their overlap instead")
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
        options = ["--counts", str(num_envs), "--learner", arguments.learner, "--loop", arguments.loop]
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
        arguments.loop,
        num_envs,
        TINY_PROTOCOL if arguments.tiny else PROTOCOL,
        learner=arguments.learner,
        device="cpu" if arguments.tiny else "auto",
        torch_threads=variant.torch_threads,
        num_threads=max(1, envs.emulator_threads(num_envs) - variant.spare_cpus),
    )
    overlap = run_overlap(cell)
    loop = max(overlap.loop.samples)
    best = {part: max(getattr(overlap, part).samples) for part in ("emulator", "learner")}
    sequential = 1 / sum(1 / rate for rate in best.values())
    return {
        "variant": name,
        "num_envs": num_envs,
        "best": {**best, "loop": loop, "sequential": round(sequential, 1)},
        "lost_percent": round(100 * (1 - loop / sequential), 1),
        "overlap": overlap.to_json(),
    }


def sleep_in_synchronise() -> None:
    """Make waits for the device sleep instead of spin; must come before torch opens it."""
    driver = ctypes.CDLL("libcuda.so.1")
    for code in (driver.cuInit(0), driver.cuDevicePrimaryCtxSetFlags_v2(0, BLOCKING_SYNC)):
        if code:
            raise VelocityError(f"the CUDA driver refused the scheduling flag with error {code}")


def row(result: dict[str, Any]) -> str:
    """One line: the rates of the best windows, and what the loop lost against one after the other."""
    best = result["best"]
    facts = result["overlap"]["loop"]["facts"]
    threads = f"threads {facts['num_threads']}+{facts['torch_threads']}"
    return (
        f"n={result['num_envs']:<4} {threads:<14} "
        f"emulator {best['emulator']:>8,.0f}  learner {best['learner']:>8,.0f}  "
        f"one after the other {best['sequential']:>8,.0f}  loop {best['loop']:>8,.0f}  "
        f"lost {result['lost_percent']:>5}%  {VARIANTS[result['variant']].suspect}"
    )


if __name__ == "__main__":
    sys.exit(main())
