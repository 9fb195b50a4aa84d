"""Compare what is installed with what the timeline's commit pins: a cell measures its stack or nothing."""

from __future__ import annotations

import json
from importlib import metadata

from packaging.requirements import Requirement

from ale_velocity.errors import VelocityError

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
    """Raise `StackMismatchError`, naming both versions, unless every pin is what is installed."""
    mismatches = [mismatch for pin in pins() if (mismatch := _mismatch(Requirement(pin)))]
    if mismatches:
        raise StackMismatchError("; ".join(mismatches))


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
