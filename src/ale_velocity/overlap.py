"""How near a loop comes to the limit that emulator and learner set: overlap efficiency."""

from __future__ import annotations

import dataclasses
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ale_velocity.cell import CellResult, run_cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from ale_velocity.cell import Cell


@dataclass(frozen=True)
class Overlap:
    """A loop and its two ceilings, measured one after the other in this process.

    `emulator` is the same loop with nothing learnt, `learner` the same loop over fixed pictures.
    """

    emulator: CellResult
    learner: CellResult
    loop: CellResult

    @property
    def ceiling(self) -> float:
        """Env-steps/s of the slower of emulator and learner: no overlap can pass it."""
        return min(statistics.fmean(result.samples) for result in (self.emulator, self.learner))

    @property
    def sequential(self) -> float:
        """Env-steps/s of emulator and learner strictly one after the other, each at its own ceiling."""
        return 1 / sum(1 / statistics.fmean(result.samples) for result in (self.emulator, self.learner))

    @property
    def samples(self) -> list[float]:
        """Percent of the ceiling that each window of the loop reached, to 4 significant digits."""
        return [float(f"{100 * sample / self.ceiling:.4g}") for sample in self.loop.samples]

    def to_json(self) -> dict[str, Any]:
        """Return the three cells whole, as JSON values."""
        parts = {"emulator": self.emulator, "learner": self.learner, "loop": self.loop}
        return {"samples": self.samples, **{name: part.to_json() for name, part in parts.items()}}


def run_overlap(cell: Cell, progress: Callable[[str], None] = lambda _: None) -> Overlap:
    """Measure a training cell and its two ceilings in this process; errors are those of `run_cell`."""
    return Overlap(
        emulator=run_cell(dataclasses.replace(cell, agent="emulator"), progress),
        learner=run_cell(dataclasses.replace(cell, backend="fixed"), progress),
        loop=run_cell(cell, progress),
    )
