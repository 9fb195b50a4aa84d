"""`ale-velocity duel`: options, what is printed, and the exit code."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ale_velocity import facts, stats
from ale_velocity.agents import AGENTS
from ale_velocity.cell import Cell
from ale_velocity.duel import report, stacks
from ale_velocity.duel.contest import Contest
from ale_velocity.errors import EXIT_ERROR, EXIT_INTERRUPTED, VelocityError
from ale_velocity.loops import LOOPS
from ale_velocity.measure import PROTOCOLS
from ale_velocity.options import at_least_one, share
from ale_velocity.settings import DEVICES, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ale_velocity.duel.contest import Side

DESCRIPTION = """\
Measure two stacks in alternating fresh processes and say whether B is faster or slower than A.

A and B are releases ('ale-velocity timeline list'), or 'installed' for the stack that this command runs in. Releases
are installed side by side below .asv/duel, and stay there. The two may be the same: then every verdict is a false one,
and the command says how much this machine's processes differ; with --repeat, how often its verdicts are false.

Verdicts: 'faster' or 'slower' where the 99.5% interval of the ratio excludes 1; 'same within X%' where the 95%
interval lies within --same-within; otherwise 'inconclusive: needs about N pairs'. Where the same seed and actions gave
other observations or rewards there is no verdict, but 'different work'. A rate stands for its process by
the best window (wall clock) or the mean of windows (CPU time). Several loops or env counts are also judged
together, by their geometric mean of each round, which finds a small change that they share with fewer pairs.

exit codes, by the verdicts in the chosen --measure:
  1    slower, in any cell or by all together
  3    inconclusive, or different work, in any cell, and none is slower
  0    otherwise: faster, or the same
  2    an error: nothing was measured, or a cell failed
  130  interrupted: what was measured is kept, see --resume
"""


def add_command(subparsers: Any) -> None:
    """Add `duel`."""
    parser = subparsers.add_parser(
        "duel",
        help="compare two stacks in alternating processes",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    add = parser.add_argument
    add("names", nargs=2, metavar="STACK", help="the stack A before, and the stack B after")
    add("--pairs", type=at_least_one, default=10, metavar="N", help="pairs of processes a cell (default: %(default)s)")
    add("--repeat", type=at_least_one, metavar="N", help="for A A: as many duels, and the rate of false verdicts")
    add("--measure", choices=tuple(report.UNITS), default="wall", help="what decides (default: %(default)s)")
    add_same_within(parser)
    add("--agent", choices=AGENTS, default="emulator", help="what is learnt (default: %(default)s)")
    add("--loops", nargs="+", choices=LOOPS, default=["step", "send_recv"], help="default: step send_recv")
    add("--counts", nargs="+", type=at_least_one, default=[8], metavar="N", help="env counts (default: 8)")
    add("--protocol", choices=PROTOCOLS, default="standard", help="work of a process (default: %(default)s)")
    add("--device", choices=DEVICES, help="where the learner computes (default: ALE_VELOCITY_DEVICE, or auto)")
    add("--game", help="ROM name in snake_case, such as ms_pacman (default: ALE_VELOCITY_GAME, or pong)")
    add("--torch-threads", type=at_least_one, metavar="N", help="default: ALE_VELOCITY_TORCH_THREADS, or torch's own")
    add(
        "--preinstalled",
        action="store_true",
        help="lay releases over the torch of this Python, which must be the one they hold, instead of installing it",
    )
    add("--json", type=Path, metavar="FILE", help="every window of every pair (default: .asv/duel/A-vs-B.json)")
    add("--resume", type=Path, metavar="FILE", help="go on with the pairs in FILE, up to --pairs; kept in FILE")
    add("--manifest", type=Path, default=Path("releases.toml"), help="default: %(default)s here")


def add_same_within(parser: argparse.ArgumentParser) -> None:
    """Add `--same-within`."""
    parser.add_argument(
        "--same-within",
        type=share,
        default=stats.SAME_WITHIN,
        metavar="PERCENT",
        help=f"a change too small to matter (default: {100 * stats.SAME_WITHIN:g})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Install, measure, print."""
    if arguments.repeat and arguments.names[0] != arguments.names[1]:
        raise VelocityError("--repeat counts false verdicts, so it needs one stack twice: duel A A --repeat N")
    if arguments.resume and arguments.json:
        raise VelocityError("--resume FILE goes on in FILE: leave --json out")
    save = _file(arguments)
    sides = stacks.prepare(arguments.names, arguments.manifest, _say, preinstalled=arguments.preinstalled)
    return fight(arguments, sides, save)


def fight(arguments: argparse.Namespace, sides: Sequence[Side], save: Path) -> int:
    """Measure two installed stacks, print what was found, and return the exit code."""
    machine = facts.gather()
    contest = Contest((sides[0], sides[1]), _cells(arguments), facts.identity(machine), machine)
    if arguments.resume:
        contest.resume(arguments.resume)
    interrupted = False
    try:
        contest.run(arguments.pairs * (arguments.repeat or 1), save, _say)
    except KeyboardInterrupt:
        interrupted = True
        if not contest.pairs:
            raise
        _say(f"interrupted; go on with the same command and --resume {save}")
    _print(contest, arguments)
    if interrupted:
        return EXIT_INTERRUPTED
    if arguments.repeat:
        return EXIT_ERROR if report.failed(contest) else 0
    return report.exit_code(contest, arguments.measure, arguments.same_within)


def _print(contest: Contest, arguments: argparse.Namespace) -> None:
    if not any(row.gap is None for row in report.rows(contest) if row.measure == arguments.measure):
        reasons = [*report.gaps(contest), *(row.gap for row in report.rows(contest) if row.gap)]
        raise VelocityError("nothing measured" + "".join(f"\n{reason}" for reason in reasons))
    print(report.text(contest, arguments.same_within, arguments.pairs, repeated=bool(arguments.repeat)))


def _cells(arguments: argparse.Namespace) -> list[Cell]:
    settings = Settings.from_environ()
    return [
        Cell(
            arguments.agent,
            loop,
            num_envs,
            PROTOCOLS[arguments.protocol],
            game=arguments.game or settings.game,
            device=arguments.device or settings.device,
            torch_threads=arguments.torch_threads or settings.torch_threads,
        )
        for num_envs in dict.fromkeys(arguments.counts)
        for loop in dict.fromkeys(arguments.loops)
    ]


def _file(arguments: argparse.Namespace) -> Path:
    if arguments.resume or arguments.json:
        path = arguments.resume or arguments.json
        if not path.absolute().parent.is_dir():
            raise VelocityError(f"{path}: there is no folder {path.absolute().parent}")
        return path
    folder = arguments.manifest.absolute().parent / ".asv" / "duel"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{'-vs-'.join(arguments.names)}.json"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
