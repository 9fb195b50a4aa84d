"""Published duels: what alternating processes say of two releases, beside the verdicts on stored cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ale_velocity.duel import report
from ale_velocity.duel.stored import Stored
from ale_velocity.errors import VelocityError
from ale_velocity.stats import SAME_WITHIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ale_velocity.stats import Comparison
    from ale_velocity.timeline.manifest import Release, Series


@dataclass(frozen=True)
class Bout:
    """One verdict of a duel: on a cell, or all cells together, by the wall clock or by CPU time.

    `what` and `where` are cell and machine in words; `reason` says why in words.
    """

    before: Release
    after: Release
    what: str
    where: str
    word: str
    reason: str
    pairs: int
    comparison: Comparison


def read(folder: Path, series: Sequence[Series]) -> list[Bout]:
    """Return what the duels in the machines' folders below `folder` say of releases.

    Raises `VelocityError` for a file that is no duel's, or not of releases as the timeline has them.
    """
    releases = {release.name: release for one in series for release in one.releases}
    return [bout for path in sorted(folder.glob("*/*.json")) for bout in _bouts(path, releases)]


def _bouts(path: Path, releases: dict[str, Release]) -> Iterator[Bout]:
    duel = Stored.load(path)
    if len(set(duel.names)) == 1:
        return  # one stack twice tells of the machine, not of releases
    for stack in duel.stacks:
        if stack["name"] not in releases or tuple(stack["pins"]) != releases[stack["name"]].requirements:
            pins = ", ".join(stack["pins"])
            raise VelocityError(f"{path}: the timeline has no {stack['name']} of {pins}; move the file away")
    before, after = (releases[name] for name in duel.names)
    for row in report.all_rows(duel):
        if row.gap:
            continue
        found = row.compare(SAME_WITHIN)
        word, reason = report.WORDS[found.change], found.reason
        if row.different_work:
            word, reason = "different work", row.different_work
        yield Bout(before, after, row.label, duel.setting, word, reason, len(row.values[0]), found)
