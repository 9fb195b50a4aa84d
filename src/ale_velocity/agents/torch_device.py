"""Choose torch's device and threads, and keep the count of what it compiled."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path
from typing import Any

import torch

from ale_velocity.errors import NotAvailableError, VelocityError

MATMUL_PRECISION = "high"  # workload.md: TF32 where the device has it


def prepare_torch(device: str, threads: int | None) -> torch.device:
    """Return the device for `auto`, `cpu` or `cuda`, with torch's threads set where `threads` is given.

    Asking for cuda without one raises `VelocityError`; a CPU without a C++ compiler `NotAvailableError`,
    since the acting path is compiled and must not run eagerly under the same name.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise VelocityError(
            f"cuda was asked for, but torch {torch.__version__} sees no CUDA device here: "
            "install a CUDA build and driver, or ask for cpu"
        )
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        require_compiler()
    if threads is not None:
        torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(MATMUL_PRECISION)
    return torch.device(device)


def require_cuda(device: str) -> None:
    """Raise `NotAvailableError` unless `device`, as for `prepare_torch`, is a CUDA device."""
    if device == "cpu" or not torch.cuda.is_available():
        raise NotAvailableError("the graphed learner needs a CUDA device: CUDA graphs are what it consists of")


def require_compiler() -> None:
    """Raise `NotAvailableError` unless torch.compile's code for CPUs can be built: a C++ compiler and Python.h."""
    candidates = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "clang++", "c++"]
    if not any(shutil.which(candidate) for candidate in candidates):
        raise NotAvailableError(
            f"no C++ compiler ({', '.join(candidates)}) for the compiled acting path: install g++, or set CXX"
        )
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        raise NotAvailableError(f"no {header} for the compiled acting path: install Python's headers (python3-dev)")


def num_compiled_graphs() -> int:
    """Return how many graphs torch.compile made in this process, recompilations included."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])  # noqa: SLF001 (no public counter exists)


def drain(device: torch.device) -> None:
    """Wait until the device's queue is empty; a CPU has none."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def torch_facts(device: torch.device) -> dict[str, Any]:
    """Return device, its name, and torch's thread count as JSON values."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {"device": device.type, "device_name": name, "torch_threads": torch.get_num_threads()}
