"""`ale-velocity verdicts`: what stored duels say, also those of other machines."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ale_velocity.cell import Cell
from ale_velocity.duel import report
from ale_velocity.duel.command import add_same_within
from ale_velocity.duel.contest import read
from ale_velocity.errors import VelocityError

DESCRIPTION = """\
Print the verdicts of duels from their files, as 'ale-velocity duel' does at its end, and measure nothing.

exit codes:
  0    all files were read
  2    a file is not a duel's, or holds no pair
"""


@dataclass(frozen=True)
class Stored:
    """A duel in a file; `machine` is the identity of the one that measured it."""

    names: tuple[str, str]
    machine: dict[str, Any]
    cells: list[Cell]
    pairs: list[dict[str, Any]]
    gaps: dict[int, dict[str, Any]]

    @classmethod
    def load(cls, path: Path) -> Stored:
        """Read a file; raise `VelocityError` unless it is a duel's with pairs."""
        saved = read(path)
        try:
            before, after = (stack["name"] for stack in saved["stacks"])
            cells = [Cell.from_json(cell) for cell in saved["cells"]]
            gaps = {gap["cell"]: gap for gap in saved["gaps"]}
        except (KeyError, TypeError, ValueError) as error:
            raise VelocityError(f"{path} is not a duel's file: {error!r}") from error
        if not saved["pairs"]:
            raise VelocityError(f"{path} holds no pair: nothing was measured")
        return cls((before, after), saved["machine"], cells, saved["pairs"], gaps)

    def describe(self) -> str:
        """Say what was measured where."""
        cell = self.cells[0]
        return f"{' against '.join(self.names)} on {self.machine['name']}, {cell.game}, protocol {cell.protocol.name}"


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
    lines = [duel.describe(), *report.verdicts(duel, same_within)]
    if len(set(duel.names)) == 1:
        lines += report.machine_noise(duel, len(duel.pairs), same_within)
    return "\n".join([*lines, *(f"not measured: {reason}" for reason in report.gaps(duel))])
