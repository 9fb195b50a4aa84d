"""What a machine is and what it is doing now: facts that are kept beside results, and judged by the doctor.

Everything is read below `root`, `/` outside tests; what a machine does not tell is None or empty.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ale_velocity import envs
from ale_velocity.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT = Path("/")
# What two result sets must share to be comparable: what a cell can use, not what else a shared host has.
IDENTITY = ("name", "cpu", "usable_cpus", "gpus")
WHERE_KNOWN = ("cpu_model", "variables")  # shared likewise; not every machine and not every early result has them
CPU_NUMBERS = {"family": "cpu family", "model": "model", "stepping": "stepping"}  # in /proc/cpuinfo
# Variables that move a rate and are read by torch's libraries, the C library or CUDA: how many threads, whether idle
# ones spin (a fifth of a blocking loop's rate on two cores), where they run; the allocator; what a GPU does at a time.
VARIABLES = (
    *("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_DYNAMIC", "OMP_PROC_BIND", "OMP_PLACES"),
    *("GOMP_SPINCOUNT", "GOMP_CPU_AFFINITY", "KMP_BLOCKTIME", "KMP_AFFINITY", "MKL_NUM_THREADS"),
    *("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "LD_PRELOAD"),
    *("CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "NVIDIA_TF32_OVERRIDE"),
    *("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"),
)

GPU_FIELDS = ("name", "driver_version", "clocks.sm", "clocks.max.sm", "temperature.gpu", "power.draw", "power.limit")
# Drivers renamed the field; older ones know only the second.
GPU_REASON_FIELDS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
# Bits of NVML's nvmlClocksEventReasons that mean "slower than the work asks for".
GPU_SLOWED = {
    0x04: "power limit",
    0x08: "hardware slowdown",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}


def gather(root: Path = ROOT, command: Callable[[list[str]], str | None] | None = None) -> dict[str, Any]:
    """Return all facts as JSON values; `command` runs a program and returns its output, None where it fails."""
    run = command or _output
    cpus = root / "sys/devices/system/cpu"
    cgroup = root / "sys/fs/cgroup"
    cpuinfo = _text(root / "proc/cpuinfo") or ""
    memory = dict(re.findall(r"^(\w+):\s+(\d+) kB$", _text(root / "proc/meminfo") or "", re.MULTILINE))
    load = (_text(root / "proc/loadavg") or "").split()
    return {
        "name": os.environ.get(PREFIX + "MACHINE") or platform.node(),
        "cpu": _first(r"^model name\s*:\s*(.+)$", cpuinfo) or platform.processor() or platform.machine(),
        "cpu_model": _cpu_model(cpuinfo),
        "num_cpus": len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE)) or os.cpu_count(),
        "affinity_cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "quota_cpus": envs.cgroup_quota(cgroup),
        "usable_cpus": envs.usable_cpus(cgroup),
        "quota_throttled": _number(_first(r"^nr_throttled (\d+)$", _text(cgroup / "cpu.stat") or "")),
        "governors": _counts(_texts(cpus, "cpu[0-9]*/cpufreq/scaling_governor")),
        "turbo": _turbo(cpus),
        "smt": {"1": True, "0": False}.get(_text(cpus / "smt/active") or ""),
        "cpu_throttle_count": _sum(_texts(cpus, "cpu[0-9]*/thermal_throttle/core_throttle_count")),
        "load": float(load[0]) if load else None,
        "memory_available_mb": _megabytes(memory.get("MemAvailable")),
        "swap_used_mb": _megabytes(memory.get("SwapTotal"), memory.get("SwapFree")),
        "virtual_machine": _virtual_machine(root, cpuinfo),
        "steal_share": _steal_share(_text(root / "proc/stat") or ""),
        "gpus": _gpus(run, os.environ.get("CUDA_VISIBLE_DEVICES")),
        "gpu_processes": _gpu_processes(run),
        "variables": {name: _names_only(os.environ[name]) for name in VARIABLES if os.environ.get(name)},
    }


def identity(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the part of the facts that two comparable result sets share, and of WHERE_KNOWN what is known."""
    kept = {key: facts[key] for key in IDENTITY} | {key: facts[key] for key in WHERE_KNOWN if facts.get(key)}
    return {**kept, "gpus": [gpu["name"] for gpu in facts["gpus"]]}


def same_machine(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two identities are of one machine; early ones know the CPU by its name only, and are not held to more."""
    models = {known["cpu_model"] for known in (one, other) if "cpu_model" in known}
    return len(models) <= 1 and {**one, "cpu_model": None} == {**other, "cpu_model": None}


def in_words(facts: dict[str, Any]) -> str:
    """Return hardware and variables of an identity for people."""
    known = identity(facts)
    model = f" ({known['cpu_model']})" if "cpu_model" in known else ""
    variables = [f"{name}={value}" for name, value in known.get("variables", {}).items()]
    return ", ".join([known["cpu"] + model, f"{known['usable_cpus']} usable CPUs", *known["gpus"], *variables])


def _names_only(value: str) -> str:
    """Leave out the folders of preloaded libraries: results are for others too."""
    return re.sub(r"[^\s:]*/", "", value)


def _cpu_model(cpuinfo: str) -> str | None:
    """Return the numbers that tell generations apart: clouds call all of a maker's by one name, such as 'AMD EPYC'."""
    numbers = [(name, _first(rf"^{field}\s*:\s*(\d+)$", cpuinfo)) for name, field in CPU_NUMBERS.items()]
    return " ".join(f"{name} {number}" for name, number in numbers if number) or None


def _turbo(cpus: Path) -> bool | None:
    intel, generic = _text(cpus / "intel_pstate/no_turbo"), _text(cpus / "cpufreq/boost")
    if intel is not None:
        return intel == "0"
    return None if generic is None else generic == "1"


def _virtual_machine(root: Path, cpuinfo: str) -> str | None:
    """Name the machine's maker where the CPU says that it runs under a hypervisor."""
    if not re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE):
        return None
    made = [_text(root / "sys/class/dmi/id" / name) for name in ("sys_vendor", "product_name")]
    return " ".join(part for part in made if part) or "a hypervisor that does not give its name"


def _steal_share(stat: str) -> float | None:
    """Return the share of CPU time since boot that other guests took: the eighth number of /proc/stat's first line."""
    times = [int(value) for value in (_first(r"^cpu\s+(.+)$", stat) or "").split()]
    steal = 7
    return round(times[steal] / sum(times[: steal + 1]), 4) if len(times) > steal and any(times) else None


def _gpus(run: Callable[[list[str]], str | None], visible: str | None) -> list[dict[str, Any]]:
    """Return the GPUs that CUDA shows to this process; without the variable it shows all."""
    if visible == "":
        return []
    chosen = [f"--id={visible}"] if visible else []
    for reasons in GPU_REASON_FIELDS:
        fields = (*GPU_FIELDS, reasons)
        text = run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", *chosen])
        if text is not None:
            return [_gpu(line.split(", ")) for line in text.strip().splitlines()]
    return []


def _gpu(values: list[str]) -> dict[str, Any]:
    name, driver, clock, max_clock, temperature, power, power_limit, reasons = values
    try:
        bits = int(reasons, 16)
    except ValueError:  # "[N/A]": virtual GPUs do not tell
        bits = 0
    return {
        "name": name,
        "driver": driver,
        "clock_mhz": _number(clock),
        "max_clock_mhz": _number(max_clock),
        "temperature_c": _number(temperature),
        "power_w": _number(power),
        "power_limit_w": _number(power_limit),
        "slowed_by": [what for bit, what in GPU_SLOWED.items() if bits & bit],
    }


def _gpu_processes(run: Callable[[list[str]], str | None]) -> list[dict[str, Any]]:
    text = run(["nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader"]) or ""
    rows = [line.partition(", ") for line in text.strip().splitlines()]
    return [{"pid": pid, "name": name} for pid, _, name in rows if pid != str(os.getpid())]


def _output(command: list[str]) -> str | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _texts(folder: Path, pattern: str) -> list[str]:
    return [text for path in sorted(folder.glob(pattern)) if (text := _text(path)) is not None]


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values))


def _sum(values: list[str]) -> int | None:
    return sum(map(int, values)) if values else None


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else None


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:  # nvidia-smi writes [N/A] for what a GPU does not have
        return None


def _megabytes(kilobytes: str | None, less: str | None = "0") -> int | None:
    return None if kilobytes is None or less is None else (int(kilobytes) - int(less)) // 1024
