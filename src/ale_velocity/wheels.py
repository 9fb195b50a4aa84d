"""Folders of wheels: which wheel answers a need on some machine, and what that wheel needs in turn."""

from __future__ import annotations

import re
import zipfile
from collections import deque
from dataclasses import dataclass, field
from email.parser import Parser
from typing import TYPE_CHECKING

from packaging import tags
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from ale_velocity.errors import VelocityError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

PLATFORM = re.compile(r"(?:(?:many|musl)?linux)(?:_(?P<major>\d+)_(?P<minor>\d+)|\d+)?_(?P<machine>[a-z]\w*)")
LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}  # names of glibc 2.17, 2.12 and 2.5
OLDEST_GLIBC = min(LEGACY)


@dataclass(frozen=True)
class Package:
    """A wheel or an installed distribution: its version, and its requirements in PEP 508 form."""

    version: str
    requires: tuple[str, ...] = ()


@dataclass(frozen=True)
class Need:
    """All that is asked of one package, and by whom."""

    name: str
    specifier: SpecifierSet = field(default_factory=SpecifierSet)
    by: tuple[str, ...] = ()

    def and_for(self, requirement: Requirement, by: str) -> Need:
        """Return the need of what asked so far and of one more."""
        asking = self.by if by in self.by else (*self.by, by)
        return Need(self.name, self.specifier & requirement.specifier, asking)

    def __str__(self) -> str:
        return f"{self.name}{self.specifier} (for {', '.join(self.by)})"


@dataclass(frozen=True)
class Target:
    """Where wheels are to be installed: the tags accepted there, and the values of environment markers."""

    tags: frozenset[tags.Tag]
    markers: dict[str, str]


def here() -> Target:
    """Return the target that this interpreter is."""
    return Target(frozenset(tags.sys_tags()), {**default_environment()})  # type: ignore[dict-item]


def linux(python: str, platforms: Iterable[str]) -> Target:
    """Return CPython `python` ("3.12") on Linux; `platforms` as `expanded` gives them."""
    names = list(platforms)
    major, minor = map(int, python.split("."))
    interpreter = f"cp{major}{minor}"
    accepted = (
        *tags.cpython_tags((major, minor), [interpreter], names),
        *tags.compatible_tags((major, minor), interpreter, names),
    )
    match = PLATFORM.fullmatch(names[0])
    markers = {
        "implementation_name": "cpython",
        "implementation_version": f"{python}.0",
        "os_name": "posix",
        "platform_machine": match["machine"] if match else "",
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": "linux",
    }
    return Target(frozenset(accepted), markers)


def expanded(platform: str) -> list[str]:
    """Return the platform tags that a machine of `platform` accepts, newest first; raise for another system's.

    A manylinux wheel runs with its glibc and every later one, which pip does not derive for another machine.
    """
    match = PLATFORM.fullmatch(platform)
    if not match:
        raise VelocityError(f"platform '{platform}' is none of Linux: name one such as manylinux_2_28_x86_64")
    if not (match["minor"] and platform.startswith("manylinux_2_")):
        return [platform]
    names = []
    for glibc in range(int(match["minor"]), OLDEST_GLIBC - 1, -1):
        names.append(f"manylinux_2_{glibc}_{match['machine']}")
        if glibc in LEGACY:
            names.append(f"{LEGACY[glibc]}_{match['machine']}")
    return names


def unmet(
    roots: Iterable[tuple[str, str]], find: Callable[[Need], Package | None], markers: dict[str, str]
) -> list[Need]:
    """Return the needs that `find` has no answer for, starting with `roots`: requirements, each with who asks for it.

    What is found is asked for its own requirements. What does not suit a later need is looked for again.
    """
    queue: deque[tuple[str, frozenset[str]]] = deque()
    needs: dict[str, Need] = {}
    found: dict[str, Package] = {}
    followed = set()

    def ask(text: str, by: str, extras: Iterable[str] = ()) -> None:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker and not any(marker.evaluate({**markers, "extra": extra}) for extra in ("", *extras)):
            return
        name = canonicalize_name(requirement.name)
        needs[name] = needs.get(name, Need(name)).and_for(requirement, by)
        queue.append((name, frozenset(requirement.extras)))

    for text, by in roots:
        ask(text, by)
    while queue:
        name, extras = queue.popleft()
        package = found.get(name)
        if package is None or not needs[name].specifier.contains(package.version, prereleases=True):
            found.pop(name, None)
            package = find(needs[name])
        if package is None:
            continue
        found[name] = package
        if (name, package.version, extras) not in followed:
            followed.add((name, package.version, extras))
            for text in package.requires:
                ask(text, f"{name} {package.version}", extras)
    return [need for name, need in needs.items() if name not in found]


def best(folders: Iterable[Path], need: Need, target: Target) -> Path | None:
    """Return the newest wheel in `folders` that answers the need on the target, None if there is none."""
    answers = []
    for folder in folders:
        for path in folder.glob("*.whl"):
            try:
                name, version, build, accepted = parse_wheel_filename(path.name)
            except InvalidWheelFilename:
                continue
            if name == need.name and accepted & target.tags and need.specifier.contains(version):
                answers.append((version, build, path))
    return max(answers)[-1] if answers else None


def read(wheel: Path) -> Package:
    """Return what a wheel says of itself; raise `VelocityError` if it is damaged."""
    _, version, *_ = parse_wheel_filename(wheel.name)
    try:
        with zipfile.ZipFile(wheel) as archive:
            (metadata,) = (
                name for name in archive.namelist() if name.count("/") == 1 and name.endswith(".dist-info/METADATA")
            )
            headers = Parser().parsestr(archive.read(metadata).decode(), headersonly=True)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise VelocityError(f"{wheel}: is not a whole wheel ({error}): delete it and fetch it again") from error
    return Package(str(version), tuple(headers.get_all("Requires-Dist", ())))
