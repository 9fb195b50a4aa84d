"""The paired test: fresh processes of both stacks alternate, and the order flips from pair to pair.

What changes slowly on a machine (heat, neighbours) meets both stacks alike and cancels within pairs; what goes on
getting slower cancels between pairs of opposite order.
"""

from __future__ import annotations

import dataclasses
import json
import operator
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ale_velocity.cell import write_json
from ale_velocity.errors import VelocityError
from ale_velocity.facts import same_machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ale_velocity.cell import Cell

SCHEMA = 1


class Side(Protocol):
    """One of the two stacks."""

    @property
    def name(self) -> str:
        """What to call it."""

    @property
    def pins(self) -> tuple[str, ...]:
        """What makes it itself."""

    def measure(self, cell: Cell) -> dict[str, Any]:
        """Measure a cell in a fresh process; a result without windows has a `reason`, and `failed` or n/a."""


@dataclass
class Contest:
    """Two stacks, the cells that are compared, and the pairs that were measured so far.

    `identity` and `facts` are the machine's; `pairs` hold `cell` and `pair` numbers, `first`, the side that ran
    first, and `results` of both sides, in the order of the sides. `gaps` tells, by cell number, why it has no more.
    """

    sides: tuple[Side, Side]
    cells: list[Cell]
    identity: dict[str, Any]
    facts: dict[str, Any]
    pairs: list[dict[str, Any]] = field(default_factory=list)
    starts: list[dict[str, Any]] = field(default_factory=list)
    gaps: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, str]:
        """Names of the sides."""
        before, after = self.sides
        return before.name, after.name

    @property
    def header(self) -> dict[str, Any]:
        """What must be the same for a contest to be resumed."""
        return {
            "stacks": [{"name": side.name, "pins": list(side.pins)} for side in self.sides],
            "cells": [_json_values(dataclasses.asdict(cell)) for cell in self.cells],
            "machine": self.identity,
        }

    def resume(self, path: Path) -> None:
        """Take over the pairs of an earlier contest; raise `VelocityError` unless it was this one, on this machine."""
        earlier = read(path)
        for key, here in self.header.items():
            same = same_machine if key == "machine" else operator.eq
            if not same(earlier[key], here):
                raise VelocityError(f"{path} cannot be resumed: {_difference(key, earlier[key], here)}")
        self.pairs, self.starts = earlier["pairs"], earlier["starts"]

    def run(
        self,
        num_pairs: int,
        save: Path,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Measure until every cell has `num_pairs` pairs, or a gap; each pair is saved when it is complete."""
        self.starts.append(self.facts)
        self.save(save)
        done = {(pair["cell"], pair["pair"]) for pair in self.pairs}
        tasks = [
            (number, index)
            for number in range(num_pairs)
            for index in range(len(self.cells))
            if (index, number) not in done
        ]
        started, num_run = clock(), 0
        while tasks:
            number, index = tasks.pop(0)
            line = self._run_pair(number, index)
            self.save(save)
            tasks = [task for task in tasks if task[1] not in self.gaps]
            num_run += 1
            left_s = (clock() - started) / num_run * len(tasks)
            say(f"pair {number + 1}/{num_pairs} {describe(self.cells[index])}: {line}; {_duration(left_s)} left")

    def save(self, path: Path) -> None:
        """Write everything."""
        gaps = [{"cell": index, **gap} for index, gap in self.gaps.items()]
        write_json(path, {"schema": SCHEMA, **self.header, "starts": self.starts, "gaps": gaps, "pairs": self.pairs})

    def _run_pair(self, number: int, index: int) -> str:
        """Measure one pair, add it, or the gap, and return a line about it."""
        first = number % 2
        results: dict[int, dict[str, Any]] = {}
        for which in (first, 1 - first):
            results[which] = self.sides[which].measure(self.cells[index])
            if "reason" in results[which]:
                reason = f"{self.sides[which].name}: {results[which]['reason']}"
                self.gaps[index] = {"reason": reason, "failed": results[which]["failed"]}
                return f"{'failed' if results[which]['failed'] else 'n/a'}: {reason}"
        self.pairs.append({"cell": index, "pair": number, "first": first, "results": [results[0], results[1]]})
        rates = (f"{side.name} {max(results[which]['samples']):,.0f}" for which, side in enumerate(self.sides))
        return f"{', '.join(rates)} env-steps/s"


def read(path: Path) -> dict[str, Any]:
    """Return what `Contest.save` wrote; raise `VelocityError` for another file."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        return {key: saved[key] for key in ("stacks", "cells", "machine", "starts", "gaps", "pairs")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VelocityError(f"{path} is not a duel's file: {error!r}") from error


def describe(cell: Cell) -> str:
    """Name a cell in a table."""
    return f"{cell.agent} {cell.loop} n={cell.num_envs}"


def _difference(key: str, there: Any, here: Any) -> str:
    """Say what differs in a part of the header, in the first item that does if there are several."""
    said = {"stacks": "its stacks are others", "cells": "its cells are others", "machine": "it is another machine's"}
    if isinstance(here, list):
        if len(there) != len(here):
            return f"{said[key]}: {len(there)} there, {len(here)} here"
        there, here = next(pair for pair in zip(there, here, strict=True) if pair[0] != pair[1])
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    values = (f"{name} is {there.get(name)!r} there, {here.get(name)!r} here" for name in names)
    return f"{said[key]}: {'; '.join(values)}"


def _json_values(value: Any) -> Any:
    """Return what `value` is after a round trip through JSON, where tuples are lists."""
    return json.loads(json.dumps(value))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"about {minutes} min {rest} s" if minutes else f"about {rest} s"
