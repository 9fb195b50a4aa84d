"""`ale-velocity wheelhouse`: gather the wheels that a machine with its own torch and no network needs.

Wheels are fetched one by one by pip, and their own requirements are followed here: pip evaluates environment markers
for the machine it runs on, not for the one that the wheels are for.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename

from ale_velocity import wheels
from ale_velocity.errors import VelocityError
from ale_velocity.timeline import manifest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ale_velocity.timeline.manifest import Release, Series
    from ale_velocity.wheels import Need, Package, Target

THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
PLATFORM = "manylinux_2_28_x86_64"
# What asv 0.6.6 installs into every environment that it makes, beside the build requirements of pyproject.toml.
ASV_INSTALLS = ("asv_runner", "build", "pip>=8", "pympler", "wheel")
# asv takes the newest setuptools it finds, and torch 2.11 refuses those from 82 on.
SETUPTOOLS = "setuptools<82"
TORCH = "torch"
SUMS = "SHA256SUMS"
PIP_LINES = 4  # of pip's complaint: its last lines say why
OTHERS_THERE = re.compile(r"\(from versions: (?!none)")  # none: no such package, or no network
DISK_FULL = ("No space left on device", "Disk quota exceeded")
DAMAGED = "is damaged: delete it"
KIB, MIB = 2**10, 2**20


def add_command(subparsers: Any) -> None:
    """Add `wheelhouse`."""
    parser = subparsers.add_parser(
        "wheelhouse",
        help="gather wheels for a machine with its own torch and no network",
        description="Fetch into a folder what such a machine needs to measure a series: the package that moves in all "
        "its releases, and in one version each what the series holds (but torch), what ale-velocity and asv need, and "
        "what these need. What is there is not fetched again.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--series", required=True, help="the series to measure, such as ale-py-torch-2.11")
    parser.add_argument(
        "--python", type=_python, default=THIS_PYTHON, metavar="X.Y", help="the machine's Python (default: %(default)s)"
    )
    parser.add_argument(
        "--platform",
        action="append",
        metavar="TAG",
        help="whose wheels the machine takes; a manylinux tag stands for all older ones too "
        f"(default: {PLATFORM}, for glibc 2.28 and later)",
    )
    parser.add_argument("--releases", nargs="+", metavar="VERSION", help="only these releases of the series")
    parser.add_argument(
        "--also", nargs="+", default=[], type=_requirement, metavar="REQUIREMENT", help="fetch these too"
    )
    parser.add_argument(
        "--preinstalled",
        nargs="+",
        default=[],
        type=_requirement,
        metavar="PACKAGE",
        help="what the machine has beside torch, such as numpy: left out, with what it needs",
    )
    parser.add_argument("-d", "--directory", type=Path, required=True, metavar="DIR", help="the folder of wheels")
    parser.add_argument(
        "--check", action="store_true", help="fetch nothing: say what is missing or damaged, and exit with 2 if so"
    )
    parser.add_argument("--manifest", type=Path, default=Path("releases.toml"), help="default: releases.toml here")


def _python(text: str) -> str:
    if not re.fullmatch(r"3\.[0-9]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a version of Python such as 3.12")
    return text


def _requirement(text: str) -> str:
    try:
        Requirement(text)
    except InvalidRequirement as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a requirement such as 'envpool>=1.2'") from error
    return text


def run(arguments: argparse.Namespace) -> int:
    """Fetch what is missing, then check the folder."""
    say = functools.partial(print, flush=True)
    series = _series(arguments.manifest, arguments.series)
    releases = _chosen(series, arguments.releases, arguments.python, say)
    platforms = [tag for platform in arguments.platform or [PLATFORM] for tag in wheels.expanded(platform)]
    wanted = Wanted(
        {release.name: roots(release, arguments.manifest, arguments.also) for release in releases},
        wheels.linux(arguments.python, platforms),
        frozenset({TORCH, *map(_name, arguments.preinstalled)}),
    )
    folder = arguments.directory
    if not arguments.check:
        try:
            fetch(wanted, folder, Pip(arguments.python, tuple(platforms)), say)
        except OSError as error:
            raise VelocityError(f"{folder}: {error.strerror}: free some space, or use another folder") from error
    problems = check(wanted, folder)
    if problems:
        listed = "\n  ".join(problems)
        hint = "to fetch what is missing, leave out --check" if arguments.check else "--releases leaves out a release"
        raise VelocityError(f"{folder} is not complete:\n  {listed}\n{hint}")
    files = list(folder.glob("*.whl"))
    size = sum(path.stat().st_size for path in files) / MIB
    versions = ", ".join(release.version for release in releases)
    say(f"{folder}: complete for {series.name} {versions} on Python {arguments.python}")
    say(f"{len(files)} wheels, {size:.1f} MiB; docs/gpu-node.md says what to do with them")
    return 0


def _series(path: Path, name: str) -> Series:
    known = {one.name: one for one in manifest.load(path)}
    if name not in known:
        raise VelocityError(f"{path} has no series '{name}': it has {', '.join(known)}")
    series = known[name]
    if TORCH not in series.held:
        able = [one.name for one in known.values() if TORCH in one.held]
        raise VelocityError(
            f"series {name} moves torch, and a machine with its own torch has one: use {' or '.join(able)}"
        )
    return series


def _chosen(series: Series, versions: Sequence[str] | None, python: str, say: Callable[[str], None]) -> list[Release]:
    """Return the releases called for by version or name, or all that run on this Python."""
    known = {key: release for release in series.releases for key in (release.version, release.name)}
    for version in versions or ():
        if version not in known:
            raise VelocityError(
                f"series {series.name} has no release '{version}': it has "
                f"{', '.join(release.version for release in series.releases)}"
            )
    chosen = []
    for release in dict.fromkeys(known[version] for version in versions or known):
        if SpecifierSet(release.requires_python).contains(f"{python}.0"):
            chosen.append(release)
        elif versions:
            raise VelocityError(f"{release.name} needs Python {release.requires_python}, not {python}")
        else:
            say(f"left out: {release.name}, which needs Python {release.requires_python}")
    if not chosen:
        raise VelocityError(f"no release of series {series.name} runs on Python {python}")
    return chosen


def roots(release: Release, manifest_path: Path, also: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return what measuring a release takes: requirements, each with what asks for it."""
    path = manifest_path.absolute().parent / "pyproject.toml"
    try:
        project = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise VelocityError(
            f"{path}: {error.strerror}: it says what ale-velocity needs, so run this in its checkout"
        ) from error
    asked = {
        release.name: release.requirements,
        project["project"]["name"]: project["project"]["dependencies"],
        "asv's environments": [*ASV_INSTALLS, *project["build-system"]["requires"], *_baselines(project)],
        TORCH: [SETUPTOOLS],
        "--also": also,
    }
    for text in asked[release.name]:
        if Requirement(text).url and _name(text) != TORCH:
            raise VelocityError(
                f"{release.name} asks for {text}, which no folder of wheels answers: choose others with --releases"
            )
    return [(text, by) for by, texts in asked.items() for text in texts]


def _baselines(project: dict[str, Any]) -> list[str]:
    """Return the extra that asv.conf.json installs into environments."""
    return project["project"].get("optional-dependencies", {}).get("baselines", [])


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


class NoSuchWheelError(VelocityError):
    """The package is known to the index, but no wheel of it answers a need."""


@dataclass(frozen=True)
class Wanted:
    """What a folder should hold: for each release its requirements, each with what asks for it, on one target.

    What is preinstalled there is neither looked for nor asked for its own requirements.
    """

    roots: dict[str, list[tuple[str, str]]]
    target: Target
    preinstalled: frozenset[str] = frozenset({TORCH})


@dataclass(frozen=True)
class Pip:
    """pip, fetching wheels for another Python and other platforms than its own."""

    python: str
    platforms: tuple[str, ...]

    def download(self, need: Need, folder: Path) -> None:
        """Put the newest wheel that answers the need into a folder; raise `VelocityError` with pip's reason."""
        command = [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir"),
            *("--no-deps", "--only-binary=:all:", "--implementation=cp", f"--python-version={self.python}"),
            *(f"--platform={platform}" for platform in self.platforms),
            *("--dest", str(folder), f"{need.name}{need.specifier}"),
        ]
        # Temporary files too: they would fill another disk, and stay there when pip is killed.
        environment = {**os.environ, "TMPDIR": str(folder)}
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, env=environment)
        if done.returncode == 0:
            return
        if any(words in done.stderr for words in DISK_FULL):
            raise VelocityError(f"{folder.parent}: the disk is full: free some space and run this again, to go on")
        reason = "\n".join(done.stderr.strip().splitlines()[-PIP_LINES:])
        kind = NoSuchWheelError if OTHERS_THERE.search(reason) else VelocityError
        raise kind(f"no wheel for {need} on Python {self.python}; pip says:\n{reason}")


def fetch(wanted: Wanted, folder: Path, pip: Pip, say: Callable[[str], None]) -> None:
    """Bring what is missing into the folder, each wheel whole or not at all, then write down their checksums."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = (folder / ".fetching").absolute()

    def find(need: Need) -> Package | None:
        if need.name in wanted.preinstalled:
            return None
        wheel = wheels.best([folder], need, wanted.target)
        if wheel is None:
            say(f"fetching {need}")
            wheel = _fetch_one(need, folder, partial, pip)
            say(f"    {wheel.name} ({wheel.stat().st_size / KIB:,.0f} KiB)")
        return wheels.read(wheel)

    def gather(needs: list[tuple[str, str]]) -> None:
        try:
            wheels.unmet(needs, find, wanted.target.markers)
        except NoSuchWheelError as error:
            say(str(error))  # other releases can still be had; the check that follows tells of this one

    for needs in wanted.roots.values():
        gather(needs)
    sums = "".join(f"{_sha256(path)}  {path.name}\n" for path in sorted(folder.glob("*.whl")))
    (folder / SUMS).write_text(sums, encoding="utf-8")


def _fetch_one(need: Need, folder: Path, partial: Path, pip: Pip) -> Path:
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed
    partial.mkdir()
    try:
        pip.download(need, partial)
        (wheel,) = partial.glob("*.whl")
        return wheel.replace(folder / wheel.name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check(wanted: Wanted, folder: Path) -> list[str]:
    """Return what is missing in the folder, and which wheels are not what was fetched."""
    sums = folder / SUMS
    listed = [line.split("  ", 1) for line in sums.read_text(encoding="utf-8").splitlines()] if sums.exists() else []
    bad = {name: "is missing" for _, name in listed if not (folder / name).exists()}
    bad |= {name: DAMAGED for digest, name in listed if name not in bad and _sha256(folder / name) != digest}
    problems: dict[tuple[str, SpecifierSet], str] = {}

    def find(need: Need) -> Package | None:
        wheel = wheels.best([folder], need, wanted.target)
        if wheel is None or wheel.name in bad:
            return None
        try:
            return wheels.read(wheel)
        except VelocityError:
            bad[wheel.name] = DAMAGED
            return None

    for needs in wanted.roots.values():
        for need in wheels.unmet(needs, find, wanted.target.markers):
            if need.name not in wanted.preinstalled and not any(_answers(name, need) for name in bad):
                problems.setdefault((need.name, need.specifier), f"no wheel for {need}")
    return [*(f"{name} {what}" for name, what in bad.items()), *problems.values()]


def _answers(wheel: str, need: Need) -> bool:
    name, version, *_ = parse_wheel_filename(wheel)
    return name == need.name and need.specifier.contains(version)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(MIB):
            digest.update(block)
    return digest.hexdigest()
