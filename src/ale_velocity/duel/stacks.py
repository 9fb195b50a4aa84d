"""Stacks side by side: an environment a release, layered over one that holds what its series holds.

The heavy packages are the held ones: two releases of ale-py share one torch. On a machine that brings its own torch,
releases may be layered over that.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.specifiers import SpecifierSet

import ale_velocity
from ale_velocity import stack
from ale_velocity.cell import write_json
from ale_velocity.errors import VelocityError
from ale_velocity.installed import find_torch
from ale_velocity.layer import lay_over, site_packages
from ale_velocity.process import measure_in_process
from ale_velocity.timeline import manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ale_velocity.cell import Cell
    from ale_velocity.installed import Torch
    from ale_velocity.timeline.manifest import Release

INSTALLED = "installed"
HARNESS = "packaging>=24"  # what ale_velocity.cell needs beside the stack
PIP_LINES = 12  # of pip's complaint: its last lines say why


@dataclass(frozen=True)
class Stack:
    """An installed stack: the interpreter that sees it, and the PEP 508 pins that its processes must find."""

    name: str
    interpreter: tuple[str, ...]
    pins: tuple[str, ...]

    def measure(self, cell: Cell) -> dict[str, Any]:
        """Measure a cell in a fresh process; see `measure_in_process`."""
        command = (*self.interpreter, "-m", "ale_velocity.cell")
        return measure_in_process(cell, lambda _line: None, command=command, pins=self.pins)


@dataclass(frozen=True)
class Beneath:
    """What an environment is laid over: folders of installed packages, and the name under which it remembers them."""

    name: str | None = None
    folders: tuple[Path, ...] = ()


def prepare(
    names: Sequence[str], manifest_path: Path, say: Callable[[str], None], *, preinstalled: bool = False
) -> list[Stack]:
    """Return the stacks called `names`, installed: releases of the manifest, or `installed` for what is here.

    With `preinstalled` releases are laid over this interpreter's own torch, which must be the one that they hold.
    Every name is looked up before anything is installed. Raises `VelocityError` for unknown ones, with the nearest,
    for a release that does not run on this Python, and for one that does not install, with pip's reason.
    """
    releases = {name: _release(name, manifest_path) for name in names if name != INSTALLED}
    torch = find_torch() if preinstalled else None
    for release in releases.values():
        if torch and not torch.is_held_by(release.requirements):
            raise VelocityError(
                f"{release.name} holds another torch than {torch.version}, which is installed in {torch.folders[0]}: "
                "choose releases of a series that holds it, or leave out --preinstalled"
            )
    folder = manifest_path.absolute().parent / ".asv" / "duel"
    return [_here() if name == INSTALLED else _install(releases[name], folder, torch, say) for name in names]


def _release(name: str, manifest_path: Path) -> Release:
    release = manifest.find(manifest.load(manifest_path), name)
    if not SpecifierSet(release.requires_python).contains(platform.python_version(), prereleases=True):
        raise VelocityError(
            f"{name} needs Python {release.requires_python}, this is {platform.python_version()}: "
            "run ale-velocity with such a Python"
        )
    return release


def _here() -> Stack:
    versions = stack.versions("ale-py", "torch", "numpy", "gymnasium")
    return Stack(INSTALLED, (sys.executable,), tuple(f"{name}=={version}" for name, version in versions.items()))


def _install(release: Release, folder: Path, torch: Torch | None, say: Callable[[str], None]) -> Stack:
    """The first requirement of a release is what moves; the others are held by its series."""
    tag = f"py{sys.version_info.major}{sys.version_info.minor}"
    options = ["-I"]  # isolated: the caller's PYTHONPATH and folder must not add to the stack
    if torch:
        layer = folder / f"{release.name}-preinstalled-{tag}"
        beneath = Beneath(" ".join(map(str, torch.folders)), torch.folders)
        _environment(layer, (*release.requirements, HARNESS), beneath, say)
        # Torch may lie where nobody may write; else each process would compile it.
        options += ["-X", f"pycache_prefix={layer / 'pycache'}"]
    else:
        held = release.requirements[1:]
        digest = hashlib.sha256("\n".join(held).encode()).hexdigest()[:8]
        base = folder / f"held-{digest}-{tag}"
        layer = folder / f"{release.name}-{tag}"
        _environment(base, (*held, HARNESS), Beneath(), say)
        # By name: the two move together.
        _environment(layer, release.requirements, Beneath(base.name, (site_packages(base),)), say)
    return Stack(release.name, (str(layer / "bin" / "python"), *options), release.requirements)


def _environment(path: Path, requirements: Sequence[str], beneath: Beneath, say: Callable[[str], None]) -> None:
    """Make a virtual environment over others' packages, unless it is there with these very requirements."""
    done = path / "stack.json"
    wanted = {"requirements": list(requirements), "base": beneath.name}
    if done.exists() and json.loads(done.read_text(encoding="utf-8")) == wanted:
        _connect(path, beneath)
        return
    say(f"installing {path.name}: {' '.join(requirements)}")
    shutil.rmtree(path, ignore_errors=True)
    _run([sys.executable, "-m", "virtualenv", "--quiet", "--no-download", str(path)], f"{path.name} cannot be made")
    _connect(path, beneath)
    pip = [str(path / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, *requirements], f"{path.name} does not install")
    write_json(done, wanted)


def _connect(path: Path, beneath: Beneath) -> None:
    """Let an environment see this very package, and those beneath; done each time, since folders get moved."""
    link = site_packages(path) / "ale_velocity"
    link.unlink(missing_ok=True)
    # Linked, not installed: a measured process runs the code of the command that started it.
    link.symlink_to(Path(ale_velocity.__file__).parent, target_is_directory=True)
    if beneath.folders:
        lay_over(path, beneath.folders)


def _run(command: list[str], failure: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        reason = "\n".join(done.stderr.strip().splitlines()[-PIP_LINES:])
        raise VelocityError(f"{failure}:\n{reason}")
