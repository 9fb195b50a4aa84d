"""The command line: each command is a module with `add_command`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ale_velocity import bench, doctor, export, interrupt, speedup, wheelhouse
from ale_velocity.duel import command as duel
from ale_velocity.duel import verdicts
from ale_velocity.errors import EXIT_ERROR, EXIT_INTERRUPTED, VelocityError
from ale_velocity.sweep import command as sweep
from ale_velocity.timeline import command as timeline

if TYPE_CHECKING:
    from collections.abc import Sequence


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; what it parses has the command's function as `run`."""
    parser = argparse.ArgumentParser(
        prog="ale-velocity",
        description="Env-steps/s of Atari training loops across releases. "
        "The history of releases is measured by asv: see 'asv run', 'asv compare', 'asv publish'.",
    )
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (bench, doctor, duel, export, speedup, sweep, timeline, verdicts, wheelhouse):
        command.add_command(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every error is one message on stderr and exit code 2."""
    arguments = make_parser().parse_args(argv)
    try:
        with interrupt.like_ctrl_c():
            return arguments.run(arguments)
    except VelocityError as error:
        print(f"ale-velocity: {error}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print("ale-velocity: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
