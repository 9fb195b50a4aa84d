"""What a sweep measures, and in which order: a useful history early, with few installations."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ale_velocity.options import envs_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MEASURED, FAILED, NOT_AVAILABLE = "measured", "failed", "n/a"
State = dict[tuple[str, str], str]  # one of these three by release and name of the cell; what is to do has none


@dataclass(frozen=True)
class Cell:
    """A cell as asv knows it: a method of a benchmark, and the place of its parameters among all combinations."""

    method: str
    place: int
    arguments: str

    @property
    def name(self) -> str:
        """asv's name for it, also in the records that cells keep."""
        return f"{self.method}-{self.place}"

    @property
    def pattern(self) -> str:
        """A regular expression for `asv run --bench` that selects this cell alone."""
        return f"^{re.escape(f'{self.method}({self.arguments})')}$"


@dataclass(frozen=True)
class Kind:
    """What one run measures in any release: a benchmark class with one loop and env count.

    Its cells are the methods of the class, which share one process.
    """

    benchmark: str
    loop: str
    num_envs: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Run:
    """A kind in a release: the unit of a sweep, measured and stored by one call of asv."""

    release: str
    kind: Kind

    def left(self, state: State) -> list[Cell]:
        """Return the cells that have neither a value nor are n/a."""
        return [cell for cell in self.kind.cells if state.get((self.release, cell.name)) in {None, FAILED}]

    def outcome(self, state: State) -> str | None:
        """Return what is known of all cells: None while one was not tried, else the worst."""
        states = {state.get((self.release, cell.name)) for cell in self.kind.cells}
        return next(outcome for outcome in (None, FAILED, MEASURED, NOT_AVAILABLE) if outcome in states)

    def __str__(self) -> str:
        return f"{self.release}, {envs_in_words(self.kind.num_envs)}, {self.kind.benchmark} {self.kind.loop}"


def ordered(releases: Sequence[str], counts: Sequence[int], kinds: Iterable[Kind]) -> list[Run]:
    """Return all runs; `releases` are oldest first, `counts` most wanted first, and kinds keep their order in a count.

    The newest and the oldest release come first with all their counts, then the middle one, then the middles of what
    lies between. Within such a level, the releases are interleaved: all loops of a count in each, before the next
    count, back and forth, so that a count costs one installation less than there are releases.
    """
    of_count = {count: [kind for kind in kinds if kind.num_envs == count] for count in counts}
    return [
        Run(release, kind)
        for level in levels(releases)
        for number, count in enumerate(counts)
        for release in (reversed(level) if number % 2 else level)
        for kind in of_count[count]
    ]


def levels(releases: Sequence[str]) -> Iterator[list[str]]:
    """Yield the ends, newest first, then the middle of every gap that is left, until none is left."""
    edges = sorted({0, len(releases) - 1}) if releases else []
    level = edges
    while level:
        yield [releases[index] for index in reversed(level)]
        level = [(left + right) // 2 for left, right in itertools.pairwise(edges) if right - left > 1]
        edges = sorted([*edges, *level])
