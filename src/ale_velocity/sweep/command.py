"""`ale-velocity sweep`: options, the loop over runs, what is printed, and the exit code."""

from __future__ import annotations

import argparse
import re
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from ale_velocity import envs
from ale_velocity.errors import EXIT_ERROR, EXIT_INTERRUPTED, VelocityError, require_known
from ale_velocity.measure import PROTOCOLS
from ale_velocity.options import at_least_one, duration, in_words
from ale_velocity.sweep import asv_process
from ale_velocity.sweep.estimate import ENVIRONMENT_S, Estimates
from ale_velocity.sweep.plan import FAILED, Kind, Run, ordered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ale_velocity.asv_plugin.history import History
    from ale_velocity.timeline.manifest import Release

EXIT_LEFT = 3
ASV_FAILED_CELLS = 2
STOP_S = 5  # kept of the budget for asv to stop in
MARGIN = 1.2  # a run starts where it would still fit if it took a fifth longer than estimated

DESCRIPTION = """\
Measure a series within a time limit, with asv, and leave ordinary asv results. Repeat the command until it exits
with 0: what has a value, or is n/a, is not measured again.

The newest and the oldest release come first with all their env counts, then the middle one, then the middles of what
lies between. Each run is one call of asv for one cell: a release, an env count, a benchmark and a loop, so that a stop
loses only the cell in progress. All loops of a count are run together; releases are interleaved, back and forth.

A run is not started if it would not fit into the budget, by the runs like it on this machine (cells.jsonl, runs.jsonl
beside the results), and is interrupted when the budget ends. Cells that failed are tried again after all others, once
a sweep; when a run fails, its release is left for the next sweep.

exit codes:
  0    everything chosen is measured, or n/a
  3    the budget is used up, and something is left
  2    cells failed, or an error: bad options, or a budget in which nothing could be finished
  130  interrupted: what was measured is kept
"""


def add_command(subparsers: Any) -> None:
    """Add `sweep`."""
    parser = subparsers.add_parser(
        "sweep",
        help="measure a history within a time limit",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    add = parser.add_argument
    add("--series", required=True, metavar="S", help="the series to measure, such as ale-py")
    add("--releases", nargs="+", metavar="VERSION", help="only these (default: all with a vector env)")
    add(
        "--bench",
        nargs="+",
        default=["DqnTraining"],
        metavar="REGEX",
        help="whole names of benchmarks, such as PpoTraining or 'Dqn.*' (default: DqnTraining, the reference workload)",
    )
    add("--loops", nargs="+", metavar="LOOP", help="only these, such as step (default: all)")
    add("--counts", nargs="+", type=at_least_one, metavar="N", help="env counts, most wanted first (default: all)")
    add("--budget", type=duration, metavar="TIME", help="such as 9m, 90s or 1h30m (default: until all is done)")
    add("--config", type=Path, default=Path("asv.conf.json"), metavar="FILE", help="default: %(default)s here")
    add("--environment", metavar="ENV", help="asv's -E (default: the environment of --config)")
    add("--dry-run", action="store_true", help="list what would run, with estimates, and measure nothing")


def run(arguments: argparse.Namespace) -> int:
    """Choose, then list or measure."""
    from ale_velocity.asv_plugin.history import History

    started = time.monotonic()
    history = History(arguments.config, arguments.environment)
    releases = _releases(arguments, history)
    kinds = _kinds(arguments, history.kinds())
    counts = _counts(arguments.counts, kinds, history.protocol)
    plan = ordered(releases, counts, kinds)
    sweep = Sweep(history, plan, arguments, started)
    _say(f"{history.machine}, {history.environment}")
    if arguments.dry_run:
        sweep.list_left()
        return 0
    return sweep.fill()


class Sweep:
    """Runs the plan, as far as the budget goes."""

    def __init__(self, history: History, plan: Sequence[Run], arguments: argparse.Namespace, started: float) -> None:
        self._history = history
        self._plan = plan
        self._arguments = arguments
        self._started = started
        self._tried: set[Run] = set()
        self._put_off: set[str] = set()  # releases of which a run failed

    def list_left(self) -> None:
        """Print all runs that are to do, with the seconds they would take, in order."""
        estimates, installed = self._estimates(), self._history.installed
        for number, run in enumerate(self._left(), start=1):
            _say(f"{number:4}. {run}: about {in_words(self._seconds(run, estimates, installed))}")
            installed = run.release
        self._say_left()

    def fill(self) -> int:
        """Run what fits; print how it ended, and return the exit code."""
        before = len(self._untried())
        in_time = True
        try:
            while in_time and (left := [run for run in self._left() if self._may_start(run)]):
                run = self._fitting(left)
                in_time = run is not None and self._run(run)
        except KeyboardInterrupt:
            _say("interrupted: what was measured is kept")
            self._say_left()
            return EXIT_INTERRUPTED
        self._say_left()
        return self._exit_code(before, in_time=in_time)

    def _exit_code(self, before: int, *, in_time: bool) -> int:
        untried = self._untried()
        if in_time or not untried:
            return EXIT_ERROR if self._left() else 0
        if len(untried) == before:
            budget, run = self._arguments.budget, untried[0]
            # An estimate that was too low is no reason to try the same again.
            seconds = max(budget, self._seconds(run, self._estimates(), self._history.installed))
            raise VelocityError(
                f"nothing was finished within {in_words(budget)}: {run} needs {in_words(seconds)} or more. "
                "Give a larger --budget"
            )
        return EXIT_LEFT

    def _untried(self) -> list[Run]:
        state = self._history.state()
        return [run for run in self._plan if run.outcome(state) is None]

    def _left(self) -> list[Run]:
        """Return what has no result, in order, and then what failed."""
        state = self._history.state()
        left = [run for run in self._plan if run.left(state)]
        return sorted(left, key=lambda run: run.outcome(state) == FAILED)

    def _may_start(self, run: Run) -> bool:
        return run not in self._tried and run.release not in self._put_off

    def _fitting(self, left: Iterable[Run]) -> Run | None:
        if self._arguments.budget is None:
            return next(iter(left))
        estimates, installed, remaining = self._estimates(), self._history.installed, self._remaining()
        return next((run for run in left if MARGIN * self._seconds(run, estimates, installed) <= remaining), None)

    def _run(self, run: Run) -> bool:
        """Run one, and keep what came of it; return whether it ended in time."""
        history, arguments = self._history, self._arguments
        self._tried.add(run)
        cells = run.left(history.state())
        installed = history.installed == run.release
        number = f"[{len(self._tried)}, {len(self._left())} left]"
        _say(f"{number} {run}: about {in_words(self._seconds(run, self._estimates(), history.installed))}")
        options = ["run", "--config", str(arguments.config), f"{run.release}^!"]
        options += ["-E", arguments.environment] if arguments.environment else []
        options += [word for cell in cells for word in ("--bench", cell.pattern)]
        started = time.monotonic()
        limit = None if arguments.budget is None else max(self._remaining(), 0)
        code = asv_process.run(options, limit, lambda line: print(line, flush=True))
        seconds = time.monotonic() - started
        if code is None:
            _say(f"{run}: interrupted after {in_words(seconds)}, at the end of the budget")
            return False
        state = history.state()
        failed = any(state.get((run.release, cell.name)) == FAILED for cell in cells)
        if code and not (code == ASV_FAILED_CELLS and failed):
            raise VelocityError(f"asv ended with code {code} for {run}: its reason is above")
        history.add_run(run, cells, seconds, installed=not installed)
        outcome = run.outcome(history.state())
        if outcome is None:
            raise VelocityError(f"asv stored nothing for {run}: its reason is above")
        if outcome == FAILED:
            self._put_off.add(run.release)
            _say(f"{run.release} is left for the next sweep, since a run of it failed")
        budget = "" if arguments.budget is None else f", {in_words(self._remaining())} of the budget left"
        _say(f"{run}: {outcome}, {in_words(seconds)}{budget}")
        return True

    def _remaining(self) -> float:
        return self._started + self._arguments.budget - STOP_S - time.monotonic()

    def _estimates(self) -> Estimates:
        return Estimates(self._history.protocol, self._history.observed())

    def _seconds(self, run: Run, estimates: Estimates, installed: str | None) -> float:
        seconds = estimates.run_s(run.kind)
        if run.release != installed:
            seconds += ENVIRONMENT_S if installed is None and self._history.is_new else estimates.install_s
        return seconds

    def _say_left(self) -> None:
        """Print how much of the plan is done, what is left, and how to go on."""
        state, left = self._history.state(), self._left()
        failed = [run for run in left if run.outcome(state) == FAILED]
        _say(f"{len(self._plan) - len(left)} of {len(self._plan)} cells done, {len(failed)} failed")
        for run in failed:
            reason = self._history.reason(run).partition("\n")[0]
            _say(f"failed: {run}: {reason or 'no record says why'}")
        if left:
            estimates, installed, seconds = self._estimates(), self._history.installed, 0.0
            for run in left:
                seconds += self._seconds(run, estimates, installed)
                installed = run.release
            _say(f"{len(left)} left, about {in_words(seconds)}: {self._command()}")

    def _command(self) -> str:
        """The command line that goes on."""
        words = ["ale-velocity", "sweep"]
        for name in ("series", "releases", "bench", "loops", "counts", "budget", "config", "environment"):
            value = getattr(self._arguments, name)
            if value is not None:
                values = [in_words(value)] if name == "budget" else value if isinstance(value, list) else [value]
                words += [f"--{name}", *map(str, values)]
        return shlex.join(words)


def _releases(arguments: argparse.Namespace, history: History) -> list[str]:
    """Return the chosen releases, oldest first, and say which were left out and why."""
    series = {one.name: one for one in history.series}
    require_known("series", [arguments.series], series)
    one = series[arguments.series]
    names = {key: release.name for release in one.releases for key in (release.name, release.version)}
    require_known("release", arguments.releases or [], names)
    wanted = {names[key] for key in arguments.releases or names}
    chosen = []
    for release in one.releases:
        if release.name not in wanted:
            continue
        if not SpecifierSet(release.requires_python).contains(history.python):
            _say(f"left out: {release.name} needs Python {release.requires_python}, this is {history.python}")
        elif not arguments.releases and not _has_vector_env(release):
            _say(f"left out: {release.name} has no vector env; --releases takes it in")
        else:
            chosen.append(release.name)
    if not chosen:
        raise VelocityError("no release is left to measure")
    return chosen


def _has_vector_env(release: Release) -> bool:
    """Whether the release's ale-py has one; a requirement that is no version is taken to."""
    ale_py = next(Requirement(text) for text in release.requirements if Requirement(text).name == "ale-py")
    return not any(spec.operator == "==" and not envs.has_vector_env(spec.version) for spec in ale_py.specifier)


def _kinds(arguments: argparse.Namespace, kinds: Sequence[Kind]) -> list[Kind]:
    """Return the kinds of the chosen benchmarks and loops."""
    for pattern in arguments.bench:
        try:
            found = any(re.fullmatch(pattern, kind.benchmark) for kind in kinds)
        except re.error as error:
            raise VelocityError(f"--bench {pattern!r} is no regular expression: {error}") from error
        if not found:
            require_known("benchmark", [pattern], {kind.benchmark for kind in kinds})
    chosen = [kind for kind in kinds if any(re.fullmatch(pattern, kind.benchmark) for pattern in arguments.bench)]
    require_known("loop", arguments.loops or [], dict.fromkeys(kind.loop for kind in chosen))
    return [kind for kind in chosen if not arguments.loops or kind.loop in arguments.loops]


def _counts(wanted: Sequence[int] | None, kinds: Sequence[Kind], protocol: str) -> list[int]:
    """Return the env counts in the order they are wanted; those of the protocol unless told otherwise."""
    measured = [count for count in PROTOCOLS[protocol].counts if any(kind.num_envs == count for kind in kinds)]
    for count in wanted or []:
        if count not in measured:
            raise VelocityError(
                f"the {protocol} protocol does not measure {count} envs: {', '.join(map(str, measured))}"
            )
    return list(dict.fromkeys(wanted or measured))


def _say(line: str) -> None:
    print(f"sweep: {line}", flush=True)
