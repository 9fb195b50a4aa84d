"""`ale-velocity verdicts`: what stored duels say, also those of other machines."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ale_velocity.duel import report
from ale_velocity.duel.command import add_same_within
from ale_velocity.duel.stored import Stored

DESCRIPTION = """\
Print the verdicts of duels from their files, as 'ale-velocity duel' does at its end, and measure nothing.

exit codes:
  0    all files were read
  2    a file is not a duel's, or holds no pair
"""


def add_command(subparsers: Any) -> None:
    """Add `verdicts`."""
    parser = subparsers.add_parser(
        "verdicts",
        help="print what stored duels say",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="of 'ale-velocity duel --json FILE'")
    add_same_within(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read all, then print."""
    duels = [Stored.load(path) for path in arguments.files]
    print("\n\n".join(_text(duel, arguments.same_within) for duel in duels))
    return 0


def _text(duel: Stored, same_within: float) -> str:
    said = report.text(duel, same_within, len(duel.pairs))
    return f"{' against '.join(duel.names)}: {duel.setting}\n{said}"
