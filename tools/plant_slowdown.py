"""Plant slowdowns of known size into the vector env, and count the pairs and minutes until a duel finds them.

    python tools/plant_slowdown.py --shares 2 5 10 --pairs 30

Both sides run the stack that is installed here. The planted side does extra work in every `step` or `recv`: a fixed
amount for each row, measured once as CPU time. By wall time and by CPU time an equal share of what an env-step costs
is planted, in duels of their own, since several emulator threads spend more CPU time than wall time.

A slowdown counts as found with N pairs if a duel of the first N, and of every larger number measured, says 'slower'.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ale_velocity import backends, facts, stats
from ale_velocity import cell as cells
from ale_velocity.agents import AGENTS
from ale_velocity.duel import report
from ale_velocity.duel.contest import Contest
from ale_velocity.duel.stacks import INSTALLED, Stack
from ale_velocity.loops import LOOPS
from ale_velocity.measure import PROTOCOLS
from ale_velocity.options import at_least_one, share
from ale_velocity.process import measure_in_process

WORKER = "--worker"
CALIBRATION_ITERATIONS = 2_000_000  # about 50 ms: long against the clock's step
CALIBRATION_TRIES = 5
LEAST_PAIRS = 2


def burn(iterations: float) -> None:
    """Do a fixed amount of work that touches no memory."""
    for _ in range(round(iterations)):
        pass


def iterations_per_second() -> float:
    """Return how much of that work fits one second of CPU time; the fastest try is the least disturbed."""
    rates = []
    for _ in range(CALIBRATION_TRIES):
        started = time.thread_time()
        burn(CALIBRATION_ITERATIONS)
        rates.append(CALIBRATION_ITERATIONS / (time.thread_time() - started))
    return max(rates)


class PlantedEnv:
    """A vector env whose every received row costs `iterations` of extra work."""

    def __init__(self, env: Any, iterations: float) -> None:
        self._env = env
        self._iterations = iterations

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def step(self, actions: Any) -> Any:
        """Step, then work."""
        return self._after(self._env.step(actions))

    def recv(self) -> Any:
        """Receive, then work."""
        return self._after(self._env.recv())

    def _after(self, received: Any) -> Any:
        rewards = received[1]
        burn(self._iterations * len(rewards))
        return received


def work(iterations: float) -> int:
    """Be the process of a planted cell: `ale_velocity.cell` with its vector env wrapped."""
    open_env = backends.BACKENDS["ale"]
    backends.BACKENDS["ale"] = lambda *arguments: PlantedEnv(open_env(*arguments), iterations)
    return cells.main()


@dataclass(frozen=True)
class Planted:
    """The installed stack with work planted into its env."""

    iterations: float
    name: str = "planted"
    pins: tuple[str, ...] = ()

    def measure(self, cell: cells.Cell) -> dict[str, Any]:
        """Measure in a fresh process."""
        command = (sys.executable, __file__, WORKER, str(self.iterations))
        return measure_in_process(cell, lambda _line: None, command=command)


def found_with(before: list[float], after: list[float]) -> int | None:
    """Return the smallest number of pairs from which on a duel says 'less', None if the whole one does not."""
    number = None
    for pairs in range(len(before), LEAST_PAIRS - 1, -1):
        if stats.compare_pairs(before[:pairs], after[:pairs]).change != "less":
            break
        number = pairs
    return number


def main() -> int:
    """Calibrate, then run one duel for each share and measure."""
    if sys.argv[1:2] == [WORKER]:
        iterations = float(sys.argv[2])
        del sys.argv[1:3]
        return work(iterations)
    arguments = _arguments()
    cell = cells.Cell(arguments.agent, arguments.loop, arguments.count, PROTOCOLS[arguments.protocol])
    plain = Stack(INSTALLED, (sys.executable,), ())
    machine = facts.gather()
    cost_s = _costs([plain.measure(cell) for _ in range(arguments.calibrate)])
    per_second = iterations_per_second()
    print(f"{arguments.agent} {arguments.loop} n={arguments.count}, {arguments.protocol}: an env-step costs", end=" ")
    print(", ".join(f"{1e6 * seconds:.0f} us {measure}" for measure, seconds in cost_s.items()), flush=True)
    print("planted  measure  pairs to find it  minutes  ratio seen  95% interval    true ratio  spread of ratios")
    for planted in arguments.shares:
        for measure in arguments.measures:
            planted_s = planted * cost_s[measure]
            side = Planted(planted_s * per_second)
            contest = Contest((plain, side), [cell], facts.identity(machine), machine)
            started = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                contest.run(arguments.pairs, Path(folder) / "pairs.json", lambda line: print(line, file=sys.stderr))
            minutes = (time.monotonic() - started) / 60 / arguments.pairs
            print(_row(contest, measure, planted, planted_s, minutes), flush=True)
    return 0


def _costs(results: list[dict[str, Any]]) -> dict[str, float]:
    """Return the wall and CPU seconds of an env-step, the median of processes."""
    return {
        measure: 1
        / statistics.median(
            stats.process_estimator(report.UNITS[measure])(result[report.SAMPLES[measure]]) for result in results
        )
        for measure in report.UNITS
    }


def _row(contest: Contest, measure: str, planted: float, planted_s: float, minutes_a_pair: float) -> str:
    """`planted_s` is the extra work of an env-step: what it is of the unplanted side's cost gives the true ratio."""
    (row,) = (one for one in report.rows(contest) if one.measure == measure)
    comparison = stats.compare_pairs(*row.values)
    number = found_with(*row.values)
    found = "not found" if number is None else str(number)
    took = "" if number is None else f"{number * minutes_a_pair:.1f}"
    spread = statistics.stdev(after / before for before, after in zip(*row.values, strict=True))
    truth = 1 / (1 + planted_s * statistics.median(row.values[0]))
    interval = f"{comparison.low:.3f} to {comparison.high:.3f}"
    return (
        f"{planted:>7.0%}  {measure:<7}  {found:>16}  {took:>7}  {comparison.ratio:>10.3f}  {interval}  "
        f"{truth:>10.3f}  {spread:>16.1%}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--shares", nargs="+", type=share, default=[0.02, 0.05, 0.1], metavar="PERCENT", help="default: 2 5 10")
    add("--measures", nargs="+", choices=tuple(report.UNITS), default=list(report.UNITS), help="default: wall cpu")
    add("--pairs", type=at_least_one, default=30, metavar="N", help="pairs a duel (default: %(default)s)")
    add("--calibrate", type=at_least_one, default=5, metavar="N", help="processes for the cost (default: %(default)s)")
    add("--agent", choices=AGENTS, default="emulator", help="default: %(default)s")
    add("--loop", choices=LOOPS, default="step", help="default: %(default)s, where nothing hides the work")
    add("--count", type=at_least_one, default=8, metavar="N", help="envs (default: %(default)s)")
    add("--protocol", choices=PROTOCOLS, default="quick", help="default: %(default)s")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
