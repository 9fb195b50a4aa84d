"""Protocols, windows, and the measurement of one process. Knows neither torch nor ale-py."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ale_velocity import pace
from ale_velocity.errors import VelocityError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ale_velocity.agents import Agent
    from ale_velocity.loops import Loop

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MAX_WARMUP_ROUNDS = 64  # an agent that has not updated after so many warm-ups never will


@dataclass(frozen=True)
class Protocol:
    """A fixed amount of work: `reps` windows of iterations after a warm-up, for some env counts.

    `iterations` is a constant, or None for a number that falls with the env count.
    """

    name: str
    reps: int
    iterations: int | None
    warmup: int
    counts: tuple[int, ...] = COUNTS

    def window_iterations(self, num_envs: int) -> int:
        """Iterations of one window: `clamp(16000 // num_envs, 100, 1000)` unless the protocol fixes them."""
        return self.iterations or min(max(16_000 // num_envs, 100), 1000)

    def window_rounds(self, num_envs: int, rollout: int) -> int:
        """Iterations of one window, rounded up to whole rollouts of `rollout` rounds."""
        return _whole(self.window_iterations(num_envs), rollout)

    def warmup_rounds(self, rollout: int) -> int:
        """Warm-up iterations, rounded up to whole rollouts of `rollout` rounds."""
        return _whole(self.warmup, rollout)


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("reference", reps=5, iterations=1000, warmup=64),
        Protocol("standard", reps=5, iterations=None, warmup=64),
        Protocol("quick", reps=2, iterations=200, warmup=32, counts=(1, 8)),
    )
}


@dataclass(frozen=True)
class Window:
    """A timed stretch: rows received in it, and seconds between two reads of each clock with the device drained.

    `elapsed_s` is wall time, `cpu_s` the CPU time of all threads of the process, which other processes do not
    stretch. Where threads spin while they wait, or the work is a GPU's, CPU time is not the cost of the work.
    """

    rows: int
    elapsed_s: float
    cpu_s: float

    @property
    def env_steps_per_second(self) -> float:
        """Throughput; one row is one env-step."""
        return self.rows / self.elapsed_s

    @property
    def env_steps_per_cpu_second(self) -> float:
        """Env-steps for one second of CPU time."""
        return self.rows / self.cpu_s


@dataclass(frozen=True)
class Measurement:
    """The windows of one process, and how long its warm-up took.

    `pace_s` are the CPU seconds of `pace.read`, before the first window and after each.
    """

    windows: tuple[Window, ...]
    warmup_s: float
    warmup_iterations: int
    pace_s: tuple[float, ...]

    @property
    def samples(self) -> list[float]:
        """Env-steps/s of each window, to 4 significant digits, as plain floats."""
        return [_rounded(window.env_steps_per_second) for window in self.windows]

    @property
    def cpu_samples(self) -> list[float]:
        """Env-steps a CPU-second of each window, to 4 significant digits, as plain floats."""
        return [_rounded(window.env_steps_per_cpu_second) for window in self.windows]


@dataclass
class _Snapshots:
    """Fingerprints of observations between windows: an emulator that shows one picture did not run."""

    seen: set[str] = field(default_factory=set)

    def add(self, observations: Any) -> None:
        if observations.min() == observations.max():
            raise VelocityError(f"observations are constant: every pixel is {observations.min()}")
        self.seen.add(hashlib.sha256(observations.tobytes()).hexdigest())

    def check(self) -> None:
        if len(self.seen) == 1:
            raise VelocityError("observations are the same after every window: the emulator did not advance")


def measure(
    loop: Loop,
    agent: Agent,
    protocol: Protocol,
    num_envs: int,
    *,
    batches: int = 1,
    rollout: int = 1,
    clock: Callable[[], float] = time.perf_counter,
    cpu_clock: Callable[[], float] = time.process_time,
    progress: Callable[[str], None] = lambda _: None,
) -> Measurement:
    """Warm up, time the protocol's windows, and check the work; raise `VelocityError` rather than report wrongly.

    The warm-up is repeated until the agent has updated at least once: it covers compilation and the first
    replay fill, which with one env takes longer than the quick protocol's 32 iterations.

    The protocol's iterations are rounds in which every env advances once: a loop whose iterations receive
    `num_envs / batches` rows has `batches` times as many, so that a window holds the same env-steps for every
    loop. They are rounded up to whole rollouts of `rollout` rounds, for an agent that learns from such.
    """
    rounds = protocol.window_rounds(num_envs, rollout)
    warmup = protocol.warmup_rounds(rollout)
    snapshots = _Snapshots()
    started = clock()
    num_warmups = warm_up(loop, agent, warmup * batches)
    agent.drain()
    warmup_s = clock() - started
    snapshots.add(agent.to_host(loop.observations))
    progress(f"warm-up {warmup_s:.1f} s")

    windows, pace_s = [], [pace.read()]
    for number in range(1, protocol.reps + 1):
        num_compiled = agent.num_compiled
        window = time_window(loop.run, rounds * batches, drain=agent.drain, clock=clock, cpu_clock=cpu_clock)
        _check_window(window, rounds * num_envs)
        if agent.num_compiled != num_compiled:
            raise VelocityError(f"torch recompiled during window {number}: its time is not a steady state's")
        snapshots.add(agent.to_host(loop.observations))
        windows.append(window)
        pace_s.append(pace.read())
        progress(f"window {number}/{protocol.reps}: {window.env_steps_per_second:,.0f} env-steps/s")
    agent.check()
    snapshots.check()
    return Measurement(tuple(windows), warmup_s, num_warmups * warmup, tuple(pace_s))


def time_window(
    run: Callable[[int], int],
    iterations: int,
    *,
    drain: Callable[[], None],
    clock: Callable[[], float],
    cpu_clock: Callable[[], float] = time.process_time,
) -> Window:
    """Run `iterations` between reads of both clocks, each after a device drain; `run` returns the rows received."""
    drain()
    cpu_started, started = cpu_clock(), clock()
    rows = run(iterations)
    drain()
    elapsed_s = clock() - started
    return Window(rows, elapsed_s, cpu_clock() - cpu_started)


def _whole(rounds: int, rollout: int) -> int:
    """Round up to whole rollouts."""
    return -(-rounds // rollout) * rollout


def warm_up(loop: Loop, agent: Agent, iterations: int) -> int:
    """Run `iterations` until the agent has updated, and return how many times that took."""
    for number in range(1, MAX_WARMUP_ROUNDS + 1):
        loop.run(iterations)
        if agent.num_updates is None or agent.num_updates > 0:
            return number
    raise VelocityError(
        f"the agent made no update in {MAX_WARMUP_ROUNDS} warm-ups of {iterations} iterations: "
        "does its replay ever hold a minibatch?"
    )


def _check_window(window: Window, expected_rows: int) -> None:
    if window.rows != expected_rows:
        raise VelocityError(f"received {window.rows} rows in a window, expected {expected_rows}")
    if not (window.elapsed_s > 0 and window.cpu_s > 0):
        raise VelocityError(f"a window took {window.elapsed_s} s, and {window.cpu_s} s of CPU time, by the clocks")


def _rounded(rate: float) -> float:
    return float(f"{rate:.4g}")
