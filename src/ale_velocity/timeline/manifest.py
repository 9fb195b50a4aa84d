"""Read releases.toml: which series there are, and the stack of each release.

A series moves one package and holds the others; a release of it is one complete, exactly pinned stack.
"""

from __future__ import annotations

import datetime as dt
import difflib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ale_velocity.errors import VelocityError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERIES_KEYS = {"package", "held", "releases"}
OPTIONAL_SERIES_KEYS = {"last_patch_only"}
RELEASE_KEYS = {"version", "date", "python", "note", "requirement"}


@dataclass(frozen=True)
class Release:
    """One commit of the timeline.

    `name` is its tag, `requirements` are PEP 508 strings that pin the whole stack, `date` is the release's
    upload in UTC, `requires_python` a version specifier, `note` a remark for people.
    """

    name: str
    version: str
    date: dt.datetime
    requirements: tuple[str, ...]
    requires_python: str
    note: str


@dataclass(frozen=True)
class Series:
    """A branch of the timeline: `package` moves through `releases`, oldest first; everything else is held.

    With `last_patch_only` new patch releases of one minor version are appended only as the last of them.
    """

    name: str
    package: str
    held: dict[str, str]
    releases: tuple[Release, ...]
    last_patch_only: bool = False


class ManifestError(VelocityError):
    """The manifest is not usable; `problems` has one sentence a place."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        super().__init__("\n".join(f"{path}: {problem}" for problem in problems))
        self.problems = problems


def load(path: Path) -> tuple[Series, ...]:
    """Return the series of the manifest at `path`; raise `ManifestError` naming every bad place in it."""
    return parse(read(path), path)


def read(path: Path) -> str:
    """Return the manifest's text, its line ends as they are."""
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise ManifestError(path, [f"cannot be read: {error.strerror or error}"]) from error
    except UnicodeDecodeError as error:
        raise ManifestError(path, [f"is not TOML: {error}"]) from error


def parse(text: str, path: Path) -> tuple[Series, ...]:
    """As `load`, of a text that is in the file at `path` or shall be."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(path, [f"is not TOML: {error}"]) from error
    problems = list(_problems(data))
    if problems:
        raise ManifestError(path, problems)
    return tuple(_series(name, entry) for name, entry in data["series"].items())


def all_releases(series: tuple[Series, ...]) -> dict[str, Release]:
    """Return every release by its name."""
    return {release.name: release for one in series for release in one.releases}


def find(series: tuple[Series, ...], name: str) -> Release:
    """Return the release called `name`; raise `VelocityError`, with the nearest names, if there is none."""
    releases = all_releases(series)
    if name not in releases:
        near = difflib.get_close_matches(name, releases) or list(releases)[-1:]
        raise VelocityError(
            f"no release '{name}'; did you mean {' or '.join(near)}? (see 'ale-velocity timeline list')"
        )
    return releases[name]


def _series(name: str, entry: dict[str, Any]) -> Series:
    package, held = entry["package"], entry["held"]
    releases = []
    for item in entry["releases"]:
        moving = item.get("requirement", f"{package}=={item['version']}")
        releases.append(
            Release(
                name=f"{name}-{item['version']}",
                version=item["version"],
                date=item["date"].astimezone(dt.timezone.utc),
                requirements=(moving, *(_held_requirement(other, pin) for other, pin in sorted(held.items()))),
                requires_python=item.get("python", ">=3.10"),
                note=item.get("note", ""),
            )
        )
    return Series(name, package, held, tuple(releases), entry.get("last_patch_only", False))


def _held_requirement(package: str, pin: str) -> str:
    """A held pin is a version, or a whole requirement (a URL) of that package."""
    return pin if "@" in pin else f"{package}=={pin}"


def _problems(data: dict[str, Any]) -> Iterator[str]:
    for key in data.keys() - {"series"}:
        yield f"unknown key '{key}' at the top (only [series.NAME] tables belong here)"
    if not isinstance(data.get("series"), dict) or not data["series"]:
        yield "has no [series.NAME] table"
        return
    for name, entry in data["series"].items():
        if not isinstance(entry, dict):
            yield f"series {name}: is not a table"
            continue
        for problem in _series_problems(entry):
            yield f"series {name}: {problem}"


def _series_problems(entry: dict[str, Any]) -> Iterator[str]:
    known = SERIES_KEYS | OPTIONAL_SERIES_KEYS
    for key in sorted(entry.keys() - known):
        yield f"unknown key '{key}' (known: {', '.join(sorted(known))})"
    missing = sorted(SERIES_KEYS - entry.keys())
    if missing:
        yield f"lacks {', '.join(missing)}"
        return
    package, held, releases = entry["package"], entry["held"], entry["releases"]
    if not isinstance(package, str) or not isinstance(held, dict) or not isinstance(releases, list):
        yield "package must be a string, held a table, releases an array of tables"
        return
    if not isinstance(entry.get("last_patch_only", False), bool):
        yield "last_patch_only must be true or false"
    yield from _held_problems(package, held)
    yield from _releases_problems(package, releases)


def _held_problems(package: str, held: dict[str, Any]) -> Iterator[str]:
    for other, pin in held.items():
        if not isinstance(pin, str):
            yield f"held {other}: the pin must be a string"
        elif problem := _pin_problem(other, pin):
            yield f"held {other}: {problem}"
        if canonicalize_name(other) == canonicalize_name(package):
            yield f"held {other}: is also the package that moves"


def _releases_problems(package: str, releases: list[Any]) -> Iterator[str]:
    previous: dict[str, Any] | None = None
    seen: dict[str, int] = {}
    for number, item in enumerate(releases, start=1):
        where = f"release {number} ({item.get('version', '?')})" if isinstance(item, dict) else f"release {number}"
        problems = list(_release_problems(package, item))
        for problem in problems:
            yield f"{where}: {problem}"
        if problems:
            continue
        if item["version"] in seen:
            yield f"{where}: duplicate of release {seen[item['version']]}"
        seen[item["version"]] = number
        if previous and item["date"] <= previous["date"]:
            yield f"{where}: is dated {item['date']}, not after release {number - 1} ({previous['version']})"
        previous = item


def _release_problems(package: str, item: Any) -> Iterator[str]:
    if not isinstance(item, dict):
        yield "is not a table"
        return
    for key in sorted(item.keys() - RELEASE_KEYS):
        yield f"unknown key '{key}' (known: {', '.join(sorted(RELEASE_KEYS))})"
    if not isinstance(item.get("version"), str):
        yield "lacks a version, as a string"
        return
    if problem := _version_problem(item["version"]):
        yield problem
    date = item.get("date")
    if not isinstance(date, dt.datetime) or date.tzinfo is None:
        yield "lacks a date with time and zone, such as 2026-08-16T23:18:56Z"
    if "requirement" in item and (problem := _requirement_problem(package, item["requirement"])):
        yield problem
    try:
        SpecifierSet(item.get("python", ""))
    except (InvalidSpecifier, AttributeError, TypeError):
        yield f"python {item['python']!r} is not a version specifier, such as '>=3.10'"
    if not isinstance(item.get("note", ""), str):
        yield "note must be a string"


def _pin_problem(package: str, pin: str) -> str | None:
    return _requirement_problem(package, pin) if "@" in pin else _version_problem(pin)


def _version_problem(version: str) -> str | None:
    try:
        Version(version)
    except InvalidVersion:
        return f"'{version}' is not one exact version (as in '0.11.2'): every stack is pinned"
    return None


def _requirement_problem(package: str, text: Any) -> str | None:
    try:
        requirement = Requirement(text)
    except (InvalidRequirement, TypeError):
        return f"requirement {text!r} is not a PEP 508 requirement"
    if canonicalize_name(requirement.name) != canonicalize_name(package):
        return f"requirement '{text}' is not for {package}"
    if requirement.url:
        is_git = requirement.url.startswith("git+")
        commit = requirement.url.rpartition("@")[2]
        if is_git and not (len(commit) == len("0" * 40) and set(commit) <= set("0123456789abcdef")):
            return f"requirement '{text}' names no commit: end the URL in @ and 40 hex digits"
        return None
    operators = {specifier.operator for specifier in requirement.specifier}
    if operators not in ({"=="}, {"==="}) or "*" in str(requirement.specifier):
        return f"requirement '{text}' does not pin one version"
    return None
