"""What is installed in folders, and where this interpreter's torch is, which is never imported for it."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ale_velocity import wheels
from ale_velocity.errors import VelocityError
from ale_velocity.wheels import Package

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ale_velocity.wheels import Need


@dataclass(frozen=True)
class Torch:
    """An installed torch: its version, and the folders in which it and all that it needs lie."""

    version: str
    folders: tuple[Path, ...]

    def is_held_by(self, requirements: Iterable[str]) -> bool:
        """Whether a stack's pins ask for it: 2.11.0+cu130 is a build of 2.11.0, and no build is known to be a URL's."""
        pin = next(pin for pin in map(Requirement, requirements) if pin.name == "torch")
        return pin.url is None and pin.specifier.contains(self.version, prereleases=True)


def find_torch() -> Torch:
    """Return the torch of this interpreter; raise `VelocityError` if there is none."""
    spec = importlib.util.find_spec("torch")
    torch = _distribution("torch")
    if spec is None or spec.origin is None or torch is None:
        raise VelocityError(f"no torch is installed for {sys.executable}")
    homes = {Path(spec.origin).parent.parent.resolve()}

    def find(need: Need) -> Package | None:
        distribution = _distribution(need.name)
        if distribution is None:
            return None
        homes.add(Path(str(distribution.locate_file(""))).resolve())
        return _package(distribution)

    wheels.unmet([("torch", "")], find, wheels.here().markers)
    order = [*(Path(entry).resolve() for entry in sys.path), *homes]
    return Torch(torch.version, tuple(sorted(homes, key=order.index)))


def packages(folders: Iterable[Path]) -> dict[str, Package]:
    """Return what is installed in folders, by name; the first folder wins."""
    found: dict[str, Package] = {}
    for distribution in metadata.distributions(path=list(map(str, folders))):
        found.setdefault(canonicalize_name(distribution.name), _package(distribution))
    return found


def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _package(distribution: metadata.Distribution) -> Package:
    return Package(distribution.version, tuple(distribution.requires or ()))
