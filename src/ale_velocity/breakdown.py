"""Where an iteration's time goes: the loops' own code over envs and an agent that keep the time of each call.

Times are those of the loop's thread. On CUDA a call returns when its work is queued, so the device's time shows
where the host waits for it: in `actions to host`.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ale_velocity.cell import open_loop
from ale_velocity.measure import warm_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from ale_velocity.cell import Cell

# The calls of a loop, by what they are for; everything else is `other`.
AGENT_PHASES = {
    "to_device": "host to device",
    "act": "act",
    "to_host": "actions to host",
    "exchange": "store",
    "store": "store",
    "learn": "update",
}
ENVS_PHASES = {"step": "wait for emulator", "send": "send", "recv": "wait for emulator"}
PHASES = ("act", "actions to host", "send", "wait for emulator", "host to device", "store", "update")
TRACED_ROUNDS = 200  # enough to look at, few enough for a file of some megabytes
LOOP_TRACK = "loop"


@dataclass(frozen=True)
class Span:
    """A stretch of time on a track, in seconds of `perf_counter`."""

    track: str
    name: str
    start_s: float
    end_s: float


@dataclass
class Recorder:
    """Keeps spans; `clock` gives seconds."""

    clock: Callable[[], float] = time.perf_counter
    spans: list[Span] = field(default_factory=list)

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, keeping a span of each call."""

        def call(*args: Any, **kwargs: Any) -> Any:
            start_s = self.clock()
            result = function(*args, **kwargs)
            self.spans.append(Span(LOOP_TRACK, name, start_s, self.clock()))
            return result

        return call


class TimedAgent:
    """An agent whose calls are timed; everything else of it is passed through."""

    def __init__(self, agent: Any, recorder: Recorder) -> None:
        self._agent = agent
        for method, phase in AGENT_PHASES.items():
            setattr(self, method, recorder.timed(phase, getattr(agent, method)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)


class TimedEnvs:
    """Envs whose calls are timed, and whose batches show on a track of their own, from their send to their receive."""

    def __init__(self, envs: Any, recorder: Recorder, track: str = "emulator") -> None:
        self._envs = envs
        self._recorder = recorder
        self._track = track
        self._sent_s: deque[float] = deque()
        timed = {method: recorder.timed(phase, getattr(envs, method)) for method, phase in ENVS_PHASES.items()}
        self.step = self._in_flight(timed["step"])
        self._timed_send, self._timed_recv = timed["send"], timed["recv"]

    def send(self, actions: Any) -> None:
        """Send, and note when."""
        self._timed_send(actions)
        self._sent_s.append(self._recorder.clock())

    def recv(self) -> Any:
        """Receive, and end the flight of the batch sent first."""
        received = self._timed_recv()
        if self._sent_s:  # the first batches after a reset of half batches were not sent for
            self._land(self._sent_s.popleft())
        return received

    def _in_flight(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def stepping(actions: Any) -> Any:
            start_s = self._recorder.clock()
            received = step(actions)
            self._land(start_s)
            return received

        return stepping

    def _land(self, start_s: float) -> None:
        self._recorder.spans.append(Span(self._track, "batch in flight", start_s, self._recorder.clock()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._envs, name)


class TimedTwoEnvs:
    """Two timed vector envs."""

    def __init__(self, envs: Any, recorder: Recorder) -> None:
        self.halves = tuple(
            TimedEnvs(half, recorder, f"emulator {number}") for number, half in enumerate(envs.halves, start=1)
        )


def timed_envs(envs: Any, recorder: Recorder) -> TimedEnvs | TimedTwoEnvs:
    """Return envs of any layout, timed."""
    return TimedTwoEnvs(envs, recorder) if hasattr(envs, "halves") else TimedEnvs(envs, recorder)


def run_breakdown(cell: Cell) -> dict[str, Any]:
    """Run one window of a cell, timed; return `breakdown` and the `trace`'s spans as JSON values.

    The breakdown has the seconds of the window, its iterations, and milliseconds an iteration for each phase.
    """
    recorder = Recorder()
    with open_loop(cell, recorder) as (loop, agent, _):
        warm_up(loop, agent, cell.protocol.warmup_rounds(agent.rollout) * loop.batches)
        agent.drain()
        recorder.spans.clear()
        iterations = cell.protocol.window_rounds(cell.num_envs, agent.rollout) * loop.batches
        start_s = recorder.clock()
        loop.run(iterations)
        agent.drain()
        elapsed_s = recorder.clock() - start_s
        spans = list(recorder.spans)
        loop.close()
    traced_s = elapsed_s * min(1.0, TRACED_ROUNDS * loop.batches / iterations)
    return {
        "breakdown": {
            "elapsed_s": elapsed_s,
            "iterations": iterations,
            "phases_ms": phases(spans, elapsed_s, iterations),
        },
        "trace": [
            [span.track, span.name, span.start_s - start_s, span.end_s - start_s]
            for span in spans
            if 0 <= span.start_s - start_s < traced_s
        ],
    }


def phases(spans: list[Span], elapsed_s: float, iterations: int) -> dict[str, float]:
    """Return milliseconds an iteration of each phase, and of `other`, what the loop itself takes."""
    totals_s = dict.fromkeys(PHASES, 0.0)
    for span in spans:
        if span.track == LOOP_TRACK:
            totals_s[span.name] += span.end_s - span.start_s
    totals_s["other"] = elapsed_s - sum(totals_s.values())
    return {name: round(1e3 * total_s / iterations, 4) for name, total_s in totals_s.items()}


def table(breakdown: dict[str, Any]) -> str:
    """Return a breakdown as lines of milliseconds and percent of an iteration, the largest first."""
    iteration_ms = 1e3 * breakdown["elapsed_s"] / breakdown["iterations"]
    lines = [f"  an iteration takes {iteration_ms:.3f} ms"]
    for name, milliseconds in sorted(breakdown["phases_ms"].items(), key=lambda item: -item[1]):
        lines.append(f"  {milliseconds:9.3f} ms {100 * milliseconds / iteration_ms:5.1f}%  {name}")
    return "\n".join(lines)


def chrome_trace(cells: dict[str, list[list[Any]]]) -> dict[str, Any]:
    """Return the traces of named cells in the JSON form that Perfetto and Chrome open: a process a cell."""
    events: list[dict[str, Any]] = []
    for pid, (name, spans) in enumerate(cells.items(), start=1):
        events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}})
        tracks = {track: tid for tid, track in enumerate(dict.fromkeys(span[0] for span in spans), start=1)}
        events += [
            {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": track}}
            for track, tid in tracks.items()
        ]
        events += [
            {
                "ph": "X",
                "name": phase,
                "pid": pid,
                "tid": tracks[track],
                "ts": round(1e6 * start_s, 1),
                "dur": round(1e6 * (end_s - start_s), 1),
            }
            for track, phase, start_s, end_s in spans
        ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}
