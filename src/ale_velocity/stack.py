"""Compare what is installed with what the timeline's commit pins: a cell measures its stack or nothing."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from ale_velocity.errors import VelocityError

if TYPE_CHECKING:
    from collections.abc import Iterable

TIMELINE_PROJECT = "ale-timeline"


class StackMismatchError(VelocityError):
    """Another version than the pinned one is installed."""


def pins() -> tuple[str, ...]:
    """Return the pinned requirements of the installed commit; raise `StackMismatchError` if there is none."""
    try:
        return tuple(metadata.requires(TIMELINE_PROJECT) or ())
    except metadata.PackageNotFoundError as error:
        raise StackMismatchError(
            f"no release of the timeline is installed here (package {TIMELINE_PROJECT}): "
            "run the benchmarks through 'asv run'"
        ) from error


def check_pins() -> None:
    """Raise `StackMismatchError`, naming both versions, unless every pin of the commit is what is installed."""
    check_requirements(pins())


def check_requirements(requirements: Iterable[str]) -> None:
    """Raise `StackMismatchError`, naming both versions, unless each pinned requirement is what is installed."""
    mismatches = [mismatch for pin in requirements if (mismatch := _mismatch(Requirement(pin)))]
    if mismatches:
        raise StackMismatchError("; ".join(mismatches))


def check_imports(requirements: Iterable[str]) -> None:
    """Raise `StackMismatchError` where a pinned package was imported from elsewhere than it is installed."""
    for pin in requirements:
        name = Requirement(pin).name
        module = sys.modules.get(name.replace("-", "_"))
        if module is None:
            continue
        home = Path(str(metadata.distribution(name).locate_file(""))).resolve()
        if not Path(str(module.__file__)).resolve().is_relative_to(home):
            raise StackMismatchError(f"{pin} is installed in {home}, but was imported from {module.__file__}")


def versions(*packages: str) -> dict[str, str]:
    """Return the installed version of each package that is installed, local build tag included (2.13.0+cpu)."""
    return {package: version for package in packages if (version := _version(package))}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _mismatch(pin: Requirement) -> str | None:
    version = _version(pin.name)
    if version is None:
        return f"the commit pins {pin}, {pin.name} is not installed"
    if pin.url:
        installed = _installed_url(pin.name) or f"release {version} of an index"
        return None if installed == pin.url else f"the commit pins {pin}, installed is {installed}"
    # A pin without a local build tag admits any build of that version: torch==2.13.0 is met by 2.13.0+cpu.
    if pin.specifier.contains(version, prereleases=True):
        return None
    return f"the commit pins {pin}, installed is {pin.name} {version}"


def _installed_url(package: str) -> str | None:
    """Return the URL a package was installed from in PEP 508 form, from its PEP 610 record."""
    text = metadata.distribution(package).read_text("direct_url.json")
    if text is None:
        return None
    record = json.loads(text)
    vcs = record.get("vcs_info")
    return f"{vcs['vcs']}+{record['url']}@{vcs['commit_id']}" if vcs else record["url"]
