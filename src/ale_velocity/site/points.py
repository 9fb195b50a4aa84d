"""What was measured: a point is one cell of one release on one machine, with all its processes."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ale_velocity.measure import PROTOCOLS
from ale_velocity.site.order import natural_key
from ale_velocity.stats import Interval, mean_interval, process_values

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

    from ale_velocity.timeline.manifest import Release, Series

ACRONYMS = {"dqn", "ppo"}
MAIN_METHOD = "track_env_steps_per_second"
DRIVERS = ("loop", "baseline")  # parameters that name what drives the envs; a benchmark has one of them
CHART_NAMES = {"step": "stepRaw", "send_recv": "recvRaw"}


@dataclass(frozen=True)
class Setup:
    """What a result depends on besides release, benchmark and parameters. All are words, as asv stores them."""

    machine: str
    protocol: str
    device: str
    game: str
    torch_threads: str
    python: str

    def __str__(self) -> str:
        """Return it in words; torch's own number of threads goes without saying."""
        number = self.torch_threads
        threads = "" if number == "default" else f", {number} torch thread{'s' * (number != '1')}"
        return f"{self.machine}, {self.device}, {self.game}, {self.protocol}{threads}, Python {self.python}"


@dataclass(frozen=True)
class Line:
    """A benchmark with its parameters but for the release: what is followed from release to release.

    `place` is that of the parameters among all that the benchmark declares.
    """

    series: str
    setup: Setup
    benchmark: str
    params: tuple[tuple[str, str], ...]
    place: int = field(default=0, compare=False)

    @property
    def sort_key(self) -> tuple[Any, ...]:
        """Natural order of all parts but the parameters, which keep the order of their declaration."""
        return *self.kind_key, self.place

    @property
    def kind_key(self) -> tuple[Any, ...]:
        """Natural order of all parts but the parameters."""
        setup = self.setup
        words = (self.series, setup.machine, setup.protocol, setup.device, setup.game, setup.torch_threads)
        return tuple(map(natural_key, (*words, setup.python, self.benchmark)))


@dataclass(frozen=True)
class Point:
    """One cell of one release. `samples` are the rates of its windows, `reps` windows a process.

    `status` is "measured", "n/a" (the release or protocol has no such cell) or "failed"; `reason` says why not
    measured, where a record tells. Without samples (asv stores them on request) `median` is all there is.
    `behaviour` is the fingerprint of the work, and `paces` what each process read of the machine's pace, where records
    have them.
    """

    line: Line
    release: Release
    unit: str
    status: str
    samples: tuple[float, ...] = ()
    median: float | None = None
    reason: str = ""
    measured_at: dt.datetime | None = None
    updates_per_env_step: float | None = None
    behaviour: str | None = None
    paces: tuple[tuple[float, ...], ...] = ()

    @cached_property
    def processes(self) -> tuple[tuple[float, ...], ...]:
        """The windows of each process; all in one if they are not whole processes of the protocol; none if unknown."""
        if len(self.samples) % self.reps:
            return (self.samples,)
        return tuple(self.samples[start : start + self.reps] for start in range(0, len(self.samples), self.reps))

    @property
    def reps(self) -> int:
        """How many windows a process of the protocol has."""
        protocol = PROTOCOLS.get(self.line.setup.protocol)
        return protocol.reps if protocol else len(self.samples) or 1

    @cached_property
    def process_values(self) -> list[float]:
        """What stands for each process in a comparison; empty unless the samples are whole processes."""
        if not self.samples or len(self.samples) % self.reps:
            return []
        return process_values(self.samples, self.reps, self.unit)

    @cached_property
    def interval(self) -> Interval:
        """Mean and 95% interval: over the windows of one process, over the means of several.

        Without samples it is the median alone. Numbers have 5 significant digits: the samples have 4.
        """
        if not self.samples:
            return Interval(float(self.median or 0), 0.0)
        if len(self.processes) == 1:
            interval = mean_interval(self.samples)
        else:
            interval = mean_interval([statistics.fmean(windows) for windows in self.processes])
        return Interval(_rounded(interval.mean), _rounded(interval.half_width))


@dataclass(frozen=True)
class Machine:
    """A machine: what asv knows of it, and what its cells recorded (GPU, threads)."""

    name: str
    facts: dict[str, str]


@dataclass(frozen=True)
class Results:
    """All that is known. `series` come from the manifest, `hashes` are commits by release name.

    `left_out` has a sentence for every kind of result that is stored but not shown.
    """

    series: tuple[Series, ...]
    hashes: dict[str, str]
    points: tuple[Point, ...]
    machines: tuple[Machine, ...]
    left_out: tuple[str, ...] = ()

    @cached_property
    def newest(self) -> dt.datetime | None:
        """When the newest of the measured points was measured."""
        return max((point.measured_at for point in self.points if point.measured_at), default=None)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Each release's place in its series, by name."""
        return {release.name: place for one in self.series for place, release in enumerate(one.releases)}

    @cached_property
    def lines(self) -> dict[Line, dict[str, Point]]:
        """Each line's points by release name, in order of lines."""
        lines: dict[Line, dict[str, Point]] = {}
        for point in self.points:
            lines.setdefault(point.line, {})[point.release.name] = point
        return {line: lines[line] for line in sorted(lines, key=lambda line: line.sort_key)}


def benchmark_label(benchmark: str) -> str:
    """Return a benchmark's name for people: `dqn.DqnTraining.track_env_steps_per_second` is "DQN training".

    What another method than that measures is added.
    """
    _, class_name, method = benchmark.split(".")
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", class_name).lower().split()
    label = " ".join(word.upper() if word in ACRONYMS else word for word in words)
    measured = "" if method == MAIN_METHOD else ", " + method.removeprefix("track_").replace("_", " ")
    return label[:1].upper() + label[1:] + measured


def driver(params: Mapping[str, Any]) -> Any:
    """Return the name of what drives the envs: the loop, or in its place the baseline; None where neither is there."""
    return next((params[name] for name in DRIVERS if name in params), None)


def chart_name(params: dict[str, str]) -> str:
    """Return the name of a curve's array of chart constants: stepRaw, recvRaw, doubleBufferRaw, stepRawGraphed."""
    first, *rest = params.get("loop", "rate").split("_")
    name = CHART_NAMES.get(params.get("loop", "")) or first + "".join(word.capitalize() for word in rest) + "Raw"
    # The eager learner is the reference's, and goes without saying.
    others = [value for key, value in params.items() if key not in {"loop", "num_envs"} and value != "eager"]
    return name + "".join(re.sub(r"\W", "", value.capitalize()) for value in others)


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")
