"""Duels in files, of any machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ale_velocity.cell import Cell
from ale_velocity.duel.contest import read
from ale_velocity.errors import VelocityError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Stored:
    """A finished or interrupted duel; `stacks` are names and pins of both, `machine` the one that measured them.

    Cells, pairs and gaps are those of `Contest`.
    """

    stacks: tuple[dict[str, Any], dict[str, Any]]
    machine: str
    cells: list[Cell]
    pairs: list[dict[str, Any]]
    gaps: dict[int, dict[str, Any]]

    @classmethod
    def load(cls, path: Path) -> Stored:
        """Read a file; raise `VelocityError` unless it is a duel's, with pairs."""
        saved = read(path)
        try:
            before, after = saved["stacks"]
            cells = [Cell.from_json(cell) for cell in saved["cells"]]
            gaps = {gap["cell"]: gap for gap in saved["gaps"]}
            duel = cls((before, after), saved["machine"]["name"], cells, saved["pairs"], gaps)
        except (KeyError, TypeError, ValueError) as error:
            raise VelocityError(f"{path} is not a duel's file: {error!r}") from error
        if not duel.pairs:
            raise VelocityError(f"{path} holds no pair: nothing was measured")
        return duel

    @property
    def names(self) -> tuple[str, str]:
        """Names of the stacks."""
        before, after = self.stacks
        return before["name"], after["name"]

    @property
    def setting(self) -> str:
        """What both sides share, in words; torch's own number of threads goes without saying."""
        cell = self.cells[0]
        number = cell.torch_threads
        threads = f", {number} torch thread{'s' * (number > 1)}" if number else ""
        return f"{self.machine}, {cell.game}, {cell.protocol.name}{threads}"
