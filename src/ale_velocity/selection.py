"""Which of the stored results a command is about: the same options for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ale_velocity.errors import VelocityError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from ale_velocity.site.points import Point

T = TypeVar("T")
SELECTABLE: dict[str, Callable[[Point], str]] = {
    "series": lambda point: point.line.series,
    "release": lambda point: point.release.name,
    "machine": lambda point: point.line.setup.machine,
    "protocol": lambda point: point.line.setup.protocol,
    "device": lambda point: point.line.setup.device,
    "game": lambda point: point.line.setup.game,
    "torch_threads": lambda point: point.line.setup.torch_threads,
    "python": lambda point: point.line.setup.python,
    "agent": lambda point: point.line.benchmark.split(".")[0],
    "benchmark": lambda point: point.line.benchmark.split(".")[1],
    "unit": lambda point: point.unit,
}


def add_options(parser: argparse.ArgumentParser, *, unit_default: str) -> None:
    """Add `--config` and an option for each of `SELECTABLE`; `unit_default` says what is taken without `--unit`."""
    parser.add_argument("--config", type=Path, default=Path("asv.conf.json"), metavar="FILE", help="asv.conf.json")
    parser.add_argument("--series", help="only this series, such as torch")
    parser.add_argument("--release", help="only this release, by its name, such as ale-py-0.12.1")
    parser.add_argument("--machine", help="only this machine")
    parser.add_argument("--protocol", help="only this protocol, such as standard")
    parser.add_argument("--device", help="only this device, such as cuda")
    parser.add_argument("--game", help="only this game, such as ms_pacman")
    parser.add_argument("--torch-threads", metavar="N", help="only this number of torch threads, or default")
    parser.add_argument("--python", metavar="VERSION", help="only this Python, such as 3.12")
    parser.add_argument("--agent", help="only benchmarks of this agent, such as dqn or emulator")
    parser.add_argument("--benchmark", help="only this benchmark, by its class, such as DqnTraining")
    parser.add_argument("--unit", help=f"only this unit; {unit_default}")


def wanted(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the values that were given, by name."""
    given = {name: getattr(arguments, name) for name in SELECTABLE}
    return {name: value for name, value in given.items() if value is not None}


def option(name: str) -> str:
    """Return the option of one of `SELECTABLE`."""
    return f"--{name.replace('_', '-')}"


def select(items: Iterable[T], values: dict[str, str], point: Callable[[T], Point]) -> list[T]:
    """Keep the items whose point has all values; raise `VelocityError`, naming what there is, if none has."""
    kept = list(items)
    for name, value in values.items():
        known = dict.fromkeys(SELECTABLE[name](point(item)) for item in kept)
        if value not in known:
            raise VelocityError(
                f"no results for {option(name)} {value}: there are results for {', '.join(known) or 'nothing'}"
            )
        kept = [item for item in kept if SELECTABLE[name](point(item)) == value]
    return kept
