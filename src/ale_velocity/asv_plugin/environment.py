"""An asv environment that holds one stack at a time."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

from asv import util
from asv.plugins.virtualenv import Virtualenv

from ale_velocity import facts
from ale_velocity.asv_plugin import machine
from ale_velocity.cell import append_record
from ale_velocity.errors import VelocityError
from ale_velocity.process import how_it_ended
from ale_velocity.settings import PREFIX, Settings


class StackEnvironment(Virtualenv):
    """`"environment_type": "stack"`: asv's virtualenv, with our variables as part of a result's identity.

    The matrix of asv.conf.json gives the variables' defaults; the caller's environment overrides them, and the
    value that was used becomes part of the environment's name, so results of different ones never mix.
    """

    tool_name = "stack"

    def __init__(self, conf: Any, python: str, requirements: dict[str, str], tagged_env_vars: dict[Any, str]) -> None:
        self.results_dir = Path(conf.results_dir).absolute()
        self._facts_kept = False
        self._command = f"{os.getpid()}-{time.time_ns()}"
        effective = {key: os.environ.get(key[1], value) for key, value in tagged_env_vars.items()}
        try:
            Settings.from_environ({**os.environ, **{name: value for (_, name), value in effective.items()}})
        except VelocityError as error:
            raise util.UserError(str(error)) from error
        device = ("nobuild", PREFIX + "DEVICE")
        if effective.get(device) == "auto":
            # A result must say where it ran; and with the device named, a broken GPU fails instead of
            # quietly running on the CPU.
            effective[device] = "cuda" if has_nvidia_gpu() else "cpu"
        super().__init__(conf, python, requirements, effective)

    def run(self, args: list[str], **kwargs: Any) -> Any:
        """Run the environment's python, telling cells who they are and where to keep their records.

        The facts of the machine are kept beside the records, once a command.
        """
        folder = self.results_dir / machine.name()
        records = folder / "cells.jsonl"
        told = {"RECORDS": str(records), "COMMAND": self._command}
        measuring = args[1:2] == ["run"]  # asv's verb for measuring one cell, named two places on, as BENCHMARK-INDEX
        if measuring:
            told["BENCHMARK"] = args[3]
            if not self._facts_kept:
                # What the machine is doing is of interest just before the first cell.
                append_record(folder / "machine.jsonl", {"command": self._command, **facts.gather()})
                self._facts_kept = True
        env = {**kwargs.pop("env", os.environ), **{PREFIX + name: value for name, value in told.items()}}
        size = _size(records)
        ended = super().run(args, env=env, **kwargs)
        if measuring and ended[2] and _size(records) == size:
            # A crash above all: only what outlives the process can keep why.
            cell = {"benchmark": args[3], "commit": self.installed_commit_hash, "environment": self.name}
            append_record(records, {"command": self._command, **cell, "reason": _how_it_ended(*ended)})
        return ended


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _how_it_ended(output: str, _: str, code: int) -> str:
    if code == util.TIMEOUT_RETCODE:
        return "it took longer than its benchmark's timeout"
    return how_it_ended(code, output.strip().splitlines())


def has_nvidia_gpu() -> bool:
    """Whether an NVIDIA driver lists a GPU here."""
    if not (shutil.which("nvidia-smi") or Path("/proc/driver/nvidia/version").exists()):
        return False
    try:
        return "GPU" in util.check_output(["nvidia-smi", "-L"], display_error=False, dots=False)
    except (util.ProcessError, OSError):
        return False
