"""`ale-velocity doctor`: what disturbs a measurement on this machine, and what to do about it."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ale_velocity import envs, facts, pace
from ale_velocity.cell import write_json
from ale_velocity.options import at_least_one
from ale_velocity.stats import is_other_pace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

IDLE_LOAD = 0.1  # of the CPUs: more than a system's own background
STEAL_LIMIT = 0.002
SWAP_LIMIT_MB = 64  # a system parks this much in swap without being short of memory


@dataclass(frozen=True)
class Finding:
    """One thing that disturbs measurements, and what to do."""

    subject: str
    found: str
    advice: str


def add_command(subparsers: Any) -> None:
    """Add `doctor`."""
    parser = subparsers.add_parser(
        "doctor",
        help="say what disturbs measurements on this machine",
        description="Look for what disturbs a measurement here, and say what to do about it. Exit code 0 whatever is "
        "found: a disturbed machine can still measure, with wider intervals.",
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--threads",
        type=at_least_one,
        default=envs.MAX_THREADS,
        metavar="N",
        help="emulator threads that you want to measure with (default: %(default)s)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write facts and findings")


def run(arguments: argparse.Namespace) -> int:
    """Print the facts and the findings."""
    known = {**facts.gather(), "speed": {**pace.probe(), "cores_s": pace.of_each_core()}}
    found = list(findings(known, arguments.threads))
    for name, value in known.items():
        print(f"{name:<20} {json.dumps(value)}")
    print()
    for finding in found:
        print(f"{finding.subject}: {finding.found}\n    {finding.advice}")
    if not found:
        print("nothing found that disturbs a measurement")
    if arguments.json:
        write_json(arguments.json, {"facts": known, "findings": [dataclasses.asdict(one) for one in found]})
    return 0


def findings(known: dict[str, Any], threads: int) -> Iterator[Finding]:
    """Yield what disturbs measurements, from the facts; what a machine does not tell is not held against it."""
    yield from _frequency(known)
    yield from _cpus(known, threads)
    yield from _company(known)
    yield from _gpus(known)
    yield from _variables(known)


def _frequency(known: dict[str, Any]) -> Iterator[Finding]:
    slow = {name: count for name, count in known["governors"].items() if name != "performance"}
    if slow:
        names = ", ".join(f"{name} on {count} CPUs" for name, count in slow.items())
        yield Finding("governor", names, "cpupower frequency-set --governor performance, as root")
    if known["turbo"]:
        yield Finding(
            "turbo",
            "on: the clock depends on temperature and on how many CPUs are busy",
            "turn it off for comparisons (echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or "
            "echo 0 > /sys/devices/system/cpu/cpufreq/boost), or use 'ale-velocity duel', which alternates",
        )
    if not known["speed"]["steady"]:
        yield Finding(
            "frequency drift",
            f"the same work took up to {known['speed']['drift']:.0%} more CPU time from one moment to the next",
            "fix the frequency, and keep other work off the machine and off the sibling threads of its CPUs",
        )
    cores = known["speed"]["cores_s"]
    if is_other_pace(ratio := max(cores) / min(cores)):
        yield Finding(
            "uneven cores",
            f"the same work takes up to {ratio - 1:.0%} more CPU time on one core than on another",
            "where cores are not alike (performance and efficiency cores), keep to equal ones with taskset; where a "
            "neighbour shares one, measure later, or with 'ale-velocity duel', which alternates",
        )
    if known["cpu_throttle_count"]:
        yield Finding(
            "heat",
            f"the CPUs were throttled {known['cpu_throttle_count']} times since boot",
            "look at cooling; compare the count before and after a run",
        )


def _cpus(known: dict[str, Any], threads: int) -> Iterator[Finding]:
    usable, quota, affinity = known["usable_cpus"], known["quota_cpus"], known["affinity_cpus"]
    if threads > usable:
        yield Finding(
            "threads",
            f"{threads} emulator threads are wanted, {usable} CPUs are usable "
            f"(affinity {affinity}, cgroup quota {quota or 'none'}): {usable} threads will be used",
            "give the process more CPUs, or do not compare with machines that have them",
        )
    if quota is not None and affinity is not None and quota < affinity:
        yield Finding(
            "quota",
            f"a cgroup quota of {quota:g} CPUs on {affinity}: torch starts a thread for each of the {affinity}, "
            f"and is then stopped for parts of every period (so far {known['quota_throttled'] or 0:.0f} times)",
            f"set ALE_VELOCITY_TORCH_THREADS={max(1, int(quota))}, or replace the quota by an affinity (taskset)",
        )


def _company(known: dict[str, Any]) -> Iterator[Finding]:
    if known["load"] is not None and known["load"] > IDLE_LOAD * known["num_cpus"]:
        yield Finding(
            "load",
            f"{known['load']:g} on {known['num_cpus']} CPUs before anything was measured",
            "stop other work, or use 'ale-velocity duel --measure cpu'",
        )
    if (known["swap_used_mb"] or 0) > SWAP_LIMIT_MB:
        yield Finding("swap", f"{known['swap_used_mb']} MB in use", "free memory, or turn swap off (swapoff -a)")
    if known["virtual_machine"]:
        yield Finding(
            "virtual machine",
            f"{known['virtual_machine']}: other guests share its CPUs, caches and power",
            "measure by duels only, and with more pairs; trust no figure across days",
        )
    if (known["steal_share"] or 0) > STEAL_LIMIT:
        yield Finding(
            "stolen time",
            f"{known['steal_share']:.1%} of CPU time since boot went to other guests",
            "use a dedicated host, or 'ale-velocity duel --measure cpu'",
        )


def _gpus(known: dict[str, Any]) -> Iterator[Finding]:
    for number, gpu in enumerate(known["gpus"]):
        if gpu["slowed_by"]:
            yield Finding(
                f"GPU {number}",
                f"{gpu['name']} runs at {gpu['clock_mhz']} of {gpu['max_clock_mhz']} MHz, held back by "
                f"{' and '.join(gpu['slowed_by'])} ({gpu['temperature_c']} C, {gpu['power_w']} of "
                f"{gpu['power_limit_w']} W)",
                "let it cool, raise the power limit, or lock its clocks (nvidia-smi --lock-gpu-clocks)",
            )
    if known["gpu_processes"]:
        names = ", ".join(f"{process['name']} ({process['pid']})" for process in known["gpu_processes"])
        yield Finding("GPU processes", names, "wait for them, or choose another GPU (CUDA_VISIBLE_DEVICES)")


def _variables(known: dict[str, Any]) -> Iterator[Finding]:
    if known["variables"]:
        values = ", ".join(f"{name}={value}" for name, value in known["variables"].items())
        yield Finding(
            "variables",
            f"{values}: rates will not be those of the libraries' own defaults",
            "unset them, or give these results a machine name of their own (ALE_VELOCITY_MACHINE)",
        )
