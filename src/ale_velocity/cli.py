"""The command line: `ale-velocity bench`, `ale-velocity timeline`, `ale-velocity export`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ale_velocity import bench, export
from ale_velocity.errors import VelocityError
from ale_velocity.timeline import command as timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_ERROR = 2  # the same as argparse's for bad options
EXIT_INTERRUPTED = 130  # what shells report for a program ended by Ctrl-C


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every error is one message on stderr and exit code 2."""
    parser = argparse.ArgumentParser(
        prog="ale-velocity",
        description="Env-steps/s of Atari training loops across releases. "
        "The history of releases is measured by asv: see 'asv run', 'asv compare', 'asv publish'.",
    )
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (bench, timeline, export):
        command.add_command(subparsers)
    arguments = parser.parse_args(argv)
    try:
        return arguments.run(arguments)
    except VelocityError as error:
        print(f"ale-velocity: {error}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print("ale-velocity: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
