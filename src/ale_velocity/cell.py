"""One cell: an agent, a loop and an env count, measured in this process.

`python -m ale_velocity.cell SPEC.json RESULT.json` runs one in a process of its own, as `bench` does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import faulthandler
import json
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ale_velocity import backends, behaviour, envs, files, stack
from ale_velocity.agents import make_agent
from ale_velocity.errors import NotAvailableError, VelocityError
from ale_velocity.loops import LOOPS
from ale_velocity.measure import Measurement, Protocol, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ale_velocity.agents import Agent
    from ale_velocity.breakdown import Recorder
    from ale_velocity.loops import Loop

EXIT_NOT_AVAILABLE = 3
# An env that never returns holds its process for ever, in native code that no signal stops. The slowest honest
# window, on two CPU cores, takes some minutes; asv's own timeout of a benchmark is an hour.
NO_PROGRESS_S = 1800


@dataclass(frozen=True)
class Cell:
    """What one process measures. A count of threads is None where torch, or the emulator, keeps its default.

    With `breakdown`, the process then runs one more window, timed call by call.
    """

    agent: str
    loop: str
    num_envs: int
    protocol: Protocol
    game: str = "pong"
    device: str = "auto"
    torch_threads: int | None = None
    num_threads: int | None = None
    breakdown: bool = False
    backend: str = "ale"
    learner: str = "eager"
    train_freq: int = 4
    batch_size: int = 32
    buffer_cap: int = 10_000

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Cell:
        """Return the cell that `dataclasses.asdict` turned into `data`."""
        protocol = Protocol(**{**data["protocol"], "counts": tuple(data["protocol"]["counts"])})
        return cls(**{**data, "protocol": protocol})


@dataclass(frozen=True)
class CellResult:
    """A cell, its measurement, and the facts of the machine and stack that it ran on."""

    cell: Cell
    measurement: Measurement
    facts: dict[str, Any]

    @property
    def samples(self) -> list[float]:
        """Env-steps/s of each window."""
        return self.measurement.samples

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values, with the windows whole."""
        return {
            "cell": dataclasses.asdict(self.cell),
            "warmup_s": round(self.measurement.warmup_s, 3),
            "warmup_iterations": self.measurement.warmup_iterations,
            "windows": [dataclasses.asdict(window) for window in self.measurement.windows],
            "samples": self.measurement.samples,
            "cpu_samples": self.measurement.cpu_samples,
            "pace_s": self.measurement.pace_s,
            "facts": self.facts,
        }


def run_cell(cell: Cell, progress: Callable[[str], None] = lambda _: None) -> CellResult:
    """Open the envs, measure, check the work, and return the result with its facts.

    Raises `NotAvailableError` for a stack that cannot run this cell, `VelocityError` for one that ran wrongly.
    """
    with stopped_without(progress) as progress_or_stop, open_loop(cell) as (loop, agent, num_threads):
        measurement = measure(
            loop,
            agent,
            cell.protocol,
            cell.num_envs,
            batches=loop.batches,
            rollout=agent.rollout,
            progress=progress_or_stop,
        )
        loop.close()
    facts = {
        "versions": stack.versions("ale-py", "torch", "numpy", "gymnasium"),
        "python": platform.python_version(),
        "num_threads": num_threads if cell.backend in backends.THREADED else None,
        "usable_cpus": envs.usable_cpus(),
        "frameskip": envs.FRAMESKIP,
        "loop": type(loop).__name__,
        **agent.facts(),
    }
    if agent.updates_per_env_step is not None:
        facts["updates_per_env_step"] = agent.updates_per_env_step
    return CellResult(cell, measurement, facts)


def with_behaviour(result: dict[str, Any], cell: Cell) -> dict[str, Any]:
    """Add `behaviour`, the fingerprint of the work that a measured cell did, where there is one.

    It opens envs of its own: call it when all windows are over.
    """
    with stopped_without(lambda _: None):
        found = behaviour.fingerprint(cell.backend, cell.game)
    return result if found is None else {**result, "behaviour": found}


@contextlib.contextmanager
def stopped_without(progress: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """Yield `progress`, at each call of which `NO_PROGRESS_S` begin anew; if they run out, end this process.

    The thread that does so needs no GIL, which ale-py before 0.12 holds while it waits. It writes
    "Timeout" and the place to stderr; a crash in native code writes its signal and place there too.
    """
    stderr = sys.__stderr__ or sys.stderr
    faulthandler.enable(stderr)

    def start() -> None:
        faulthandler.dump_traceback_later(NO_PROGRESS_S, exit=True, file=stderr)

    def called(line: str) -> None:
        start()
        progress(line)

    start()
    try:
        yield called
    finally:
        faulthandler.cancel_dump_traceback_later()


@contextlib.contextmanager
def open_loop(cell: Cell, recorder: Recorder | None = None) -> Iterator[tuple[Loop, Agent, int]]:
    """Open the envs of a cell and make its agent and loop; yield loop, agent and the emulator's thread count.

    With a recorder the loop runs over timed envs and a timed agent; without one nothing is between them.
    """
    kind = LOOPS[cell.loop]
    num_threads = envs.emulator_threads(cell.num_envs, cell.num_threads)
    with contextlib.closing(
        backends.open_envs(cell.backend, kind.layout, cell.game, cell.num_envs, num_threads, batches=kind.batches)
    ) as opened:
        agent = make_agent(
            cell.agent,
            num_envs=cell.num_envs,
            num_rows=cell.num_envs // kind.batches,
            num_actions=int(opened.single_action_space.n),
            device=cell.device,
            learner=cell.learner,
            torch_threads=cell.torch_threads,
            train_freq=cell.train_freq,
            batch_size=cell.batch_size,
            buffer_cap=cell.buffer_cap,
        )
        if recorder is None:
            yield kind(opened, agent, envs.SEED), agent, num_threads
        else:
            from ale_velocity.breakdown import TimedAgent, timed_envs

            timed_agent: Any = TimedAgent(agent, recorder)
            yield kind(timed_envs(opened, recorder), timed_agent, envs.SEED), agent, num_threads


def cpu_time_gap(facts: dict[str, Any]) -> str | None:
    """Return why CPU time is not what this cell's work costs, from its facts; None where it is.

    The emulator's threads sleep while they wait, but for some microseconds of spinning; torch's do not.
    """
    if facts["device"] == "cuda":
        return "CPU time leaves out the work of the GPU"
    if facts.get("torch_threads", 1) > 1:
        return (
            f"torch's {facts['torch_threads']} threads spin while they wait, which is CPU time without work: "
            "give torch 1 thread"
        )
    return None


def use_private_compile_cache() -> None:
    """Keep torch.compile's cache with the environment of an asv run; elsewhere torch's default place serves."""
    if environment := os.environ.get("ASV_ENV_DIR"):
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(Path(environment) / "torchinductor"))


def append_record(path: Path, record: dict[str, Any]) -> None:
    """Append one JSON line, in one write, so that a stop in between loses at most this line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stamp = dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"at": stamp, **record}) + "\n")


def main() -> int:
    """Run the cell of a JSON file and write its result, or `{"reason": ...}`, to another.

    The first holds `{"cell": ..., "pins": [...]}`; another stack than the pins is refused.
    """
    spec_path, result = (Path(argument) for argument in sys.argv[1:])
    spec = json.loads(spec_path.read_text(encoding="utf-8"))
    try:
        cell = Cell.from_json(spec["cell"])
        stack.check_requirements(spec["pins"])
        data = run_cell(cell, progress=lambda line: print(line, file=sys.stderr, flush=True)).to_json()
        if cell.breakdown:
            from ale_velocity.breakdown import run_breakdown

            data |= run_breakdown(cell)
        data = with_behaviour(data, cell)
        stack.check_imports(spec["pins"])
    except VelocityError as error:
        write_json(result, {"reason": str(error)})
        return EXIT_NOT_AVAILABLE if isinstance(error, NotAvailableError) else 1
    write_json(result, data)
    return 0


def write_json(path: Path, data: Any) -> None:
    """Write JSON so that a stop leaves either the old file or the new one, never half."""
    files.replace(path, json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
