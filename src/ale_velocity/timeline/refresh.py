"""Append new releases of the moving packages to the manifest: which ones count, and lines of text for them.

A line that has a commit is never edited, so the text is only added to, and what it then says is compared with what
it said before.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

from ale_velocity.errors import VelocityError, require_known
from ale_velocity.timeline import manifest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ale_velocity.timeline.index import IndexRelease

# A release is a set of files uploaded one by one, and its line, once measured, is never edited.
SETTLED_AFTER = dt.timedelta(days=1)


@dataclass(frozen=True)
class News:
    """What the index has after a series' last release: `new` is to be appended; `left_out` says what not, and why."""

    series: manifest.Series
    new: tuple[IndexRelease, ...]
    left_out: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The releases' names, as in `timeline list`."""
        return [f"{self.series.name}-{release.version}" for release in self.new]


def choose(wanted: list[str], series: tuple[manifest.Series, ...]) -> list[manifest.Series]:
    """Return the series of these names, all if there are none; raise `VelocityError` for an unknown one."""
    require_known("series", wanted, [one.name for one in series])
    return [one for one in series if not wanted or one.name in wanted]


def news(series: manifest.Series, offered: Iterable[IndexRelease], now: dt.datetime) -> News:
    """Return what to append, as if each release had been looked at on the day of its upload."""
    version, date = Version(series.releases[-1].version), series.releases[-1].date
    new: list[IndexRelease] = []
    left_out: list[str] = []
    later = [release for release in offered if release.version > version]
    for release in sorted(later, key=lambda release: (release.date, release.version)):
        if why := _objection(release, version, date, now):
            left_out.append(f"{release.version} {why}")
            continue
        if series.last_patch_only and new and new[-1].version.release[:2] == release.version.release[:2]:
            left_out.append(f"{new.pop().version} is followed by {release.version} of the same minor version")
        version, date = release.version, release.date
        new.append(release)
    return News(series, tuple(new), tuple(left_out))


def _objection(release: IndexRelease, version: Version, date: dt.datetime, now: dt.datetime) -> str | None:
    """Why a release cannot follow the one of that version and date, None if it can."""
    if release.yanked:
        return "was yanked"
    if not release.python:
        return "has no wheel for CPython 3.10 or later on Linux x86-64"
    if release.date > now - SETTLED_AFTER:
        return "is less than a day old, and may be getting more wheels"
    if release.version < version:
        return f"came after {version}, which is higher"
    if release.date <= date:
        return f"is dated {release.date:%Y-%m-%dT%H:%M:%SZ}, not after {version}"
    return None


def appended(text: str, found: Iterable[News], path: Path) -> str:
    """Return the manifest's text with the new releases' lines in it and nothing else changed."""
    before = manifest.parse(text, path)
    lines = {one.series.name: [_line(release) for release in one.new] for one in found if one.new}
    for name, new in lines.items():
        text = _with_lines(text, name, new)
    try:
        after = manifest.parse(text, path)
    except manifest.ManifestError:
        after = ()
    if [_outline(one, len(lines.get(one.name, ()))) for one in after] != [_outline(one, 0) for one in before]:
        by_hand = "\n".join(f"{name}: {line}" for name, new in lines.items() for line in new)
        raise VelocityError(
            f"{path}: lines can only be added where each release has a line of its own, with a comma at its end, and "
            f"the closing bracket of the releases has one too. Write it so, or add by hand:\n{by_hand}"
        )
    return text


def _outline(series: manifest.Series, new: int) -> tuple[object, ...]:
    """Everything that a series says, less its last `new` releases."""
    releases = series.releases[: len(series.releases) - new]
    return series.name, series.package, series.held, releases, series.last_patch_only


def _with_lines(text: str, name: str, lines: list[str]) -> str:
    """Return the text with lines before the closing bracket of a series' releases, unchanged if there is none."""
    table = rf'^[ \t]*\[series\.(?:{re.escape(name)}|"{re.escape(name)}")\]'
    found = re.search(rf"{table}.*?^[ \t]*releases\s*=\s*\[.*?(?=^[ \t]*\])", text, re.MULTILINE | re.DOTALL)
    if not found:
        return text
    line_end = "\r\n" if "\r\n" in text else "\n"
    return text[: found.end()] + "".join(line + line_end for line in lines) + text[found.end() :]


def _line(release: IndexRelease) -> str:
    date = f"{release.date:%Y-%m-%dT%H:%M:%SZ}"
    return f'    {{ version = "{release.version}", date = {date}, python = "{release.python}" }},'


def diff(old: str, new: str, path: Path) -> str:
    """Return the difference of two texts of a file, as in a patch."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), str(path), str(path), lineterm="")
    return "\n".join(lines)
