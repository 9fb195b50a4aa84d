"""An asv environment over the torch that a machine brought along, for machines that cannot fetch one.

The torch is that of the interpreter that runs asv. `--system-site-packages` would not do: the child of a virtual
environment sees its base's packages only, and torch may lie in a folder on PYTHONPATH, which asv drops.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from asv import util
from asv.environment import EnvironmentUnavailable
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ale_velocity import installed, wheels
from ale_velocity.asv_plugin.environment import StackEnvironment
from ale_velocity.asv_plugin.points import Point
from ale_velocity.asv_plugin.refusal import refuse
from ale_velocity.errors import VelocityError
from ale_velocity.layer import lay_over, site_packages
from ale_velocity.wheelhouse import ASV_INSTALLS
from ale_velocity.wheels import Package

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ale_velocity.installed import Torch
    from ale_velocity.timeline.manifest import Release
    from ale_velocity.wheels import Need

THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
YES = ("1", "true", "yes", "on", "y", "t")  # to pip
DISCOVER = Point("asv.benchmarks:Benchmarks.discover", "05f4f1a5bed973a2")


def install() -> None:
    """Let commands that measure look at all their commits before the first is installed."""
    DISCOVER.check()
    DISCOVER.replace(checked_first)


def checked_first(discover: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of `Benchmarks.discover`, which is the first that gets all commits of a command."""

    def check_and_discover(
        cls: Any, conf: Any, repo: Any, environments: list[Any], commit_hash: list[str], *args: Any, **kwargs: Any
    ) -> Any:
        for environment in environments:
            if isinstance(environment, PreinstalledEnvironment):
                environment.check(repo, commit_hash)
        return discover(cls, conf, repo, environments, commit_hash, *args, **kwargs)

    return check_and_discover


class PreinstalledEnvironment(StackEnvironment):
    """`asv run -E preinstalled`: each commit's packages over the torch of this interpreter, which stays as it is."""

    tool_name = "preinstalled"

    def __init__(self, conf: Any, python: str, requirements: dict[str, str], tagged_env_vars: dict[Any, str]) -> None:
        if python != THIS_PYTHON:
            raise EnvironmentUnavailable(f"a preinstalled torch is that of Python {THIS_PYTHON}, not of {python}")
        super().__init__(conf, python, requirements, tagged_env_vars)
        self._executable = sys.executable  # asv would take the first of that version on PATH

    def create(self) -> None:
        """Make the environment unless it is there, and lay it over where torch is now."""
        torch = _torch()
        if not self.check_presence():
            virtualenv_brings = {"pip": Package("8")}
            _require_wheels([([(text, "asv") for text in ASV_INSTALLS], virtualenv_brings)])
        super().create()
        if lay_over(Path(self._path), torch.folders):
            self._set_installed_commit_hash(None)  # other folders offer other packages

    def run(self, args: list[str], **kwargs: Any) -> Any:
        """Run the environment's python, which keeps compiled modules with the environment.

        Containers often switch that off, or lay torch where nobody may write: then each cell compiles all of torch.
        """
        env = {**kwargs.pop("env", os.environ), "PYTHONPYCACHEPREFIX": str(Path(self._path) / "pycache")}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        return super().run(args, env=env, **kwargs)

    def install_project(self, conf: Any, repo: Any, commit_hash: str) -> None:
        """Install a commit, unless pip would fetch another torch for it."""
        if problem := _mismatch(_torch(), repo, [commit_hash]):
            raise util.UserError(problem)
        super().install_project(conf, repo, commit_hash)

    def check(self, repo: Any, commits: list[str]) -> None:
        """Refuse commits that hold another torch, and those whose wheels pip would not find."""
        torch = _torch()
        if problem := _mismatch(torch, repo, commits):
            refuse(problem)
        beside = installed.packages(torch.folders)
        own = installed.packages([site_packages(Path(self._path))])
        releases = [repo.get_release(commit) for commit in commits]
        series = next(one.name for one in repo.series if releases[0] in one.releases)
        _require_wheels([(_pins(release), _seen(release, own, beside)) for release in releases], series)


def _torch() -> Torch:
    try:
        return installed.find_torch()
    except VelocityError as error:
        refuse(
            f"{error}, and -E preinstalled measures with the torch of the Python that runs asv: run it with the one "
            "that has torch, or leave out -E, and each commit's torch is fetched"
        )


def _mismatch(torch: Torch, repo: Any, commits: Iterable[str]) -> str | None:
    """Say which commits hold another torch than the installed one, and what to do; None if none does."""
    wrong = [release for release in map(repo.get_release, commits) if not torch.is_held_by(release.requirements)]
    if not wrong:
        return None
    fitting: list[str] = []
    for series in repo.series:
        names = [release.name for release in series.releases if torch.is_held_by(release.requirements)]
        fitting += [series.name] if len(names) == len(series.releases) else names
    held = ", ".join(f"{release.name} holds {_pin(release)}" for release in wrong)
    measure = f"measure {' or '.join(fitting)}" if fitting else "add a series that holds this torch to releases.toml"
    return (
        f"{held}, but installed in {torch.folders[0]} is torch {torch.version}, which -E preinstalled does not "
        f"replace: {measure}, or leave out -E, and each commit's torch is fetched"
    )


def _pin(release: Release) -> Requirement:
    return next(pin for pin in map(Requirement, release.requirements) if pin.name == "torch")


def _only_folders() -> list[Path] | None:
    """Return the folders that pip takes wheels from, None if it looks elsewhere too."""
    if os.environ.get("PIP_NO_INDEX", "").lower() not in YES:
        return None
    places = [urlsplit(place) for place in os.environ.get("PIP_FIND_LINKS", "").split()]
    if any(place.scheme not in {"", "file"} for place in places):
        return None
    return [Path(unquote(place.path)) for place in places]


def _pins(release: Release) -> list[tuple[str, str]]:
    return [(text, release.name) for text in release.requirements if Requirement(text).url is None]


def _seen(release: Release, own: dict[str, Package], beside: dict[str, Package]) -> dict[str, Package]:
    """Return what a release finds installed: in its environment, where it pins nothing, and beside torch.

    What the environment has of a pinned package is of another commit, and the next one may replace it.
    """
    pinned = {canonicalize_name(Requirement(text).name) for text in release.requirements}
    return {**beside, **{name: package for name, package in own.items() if name not in pinned}}


def _require_wheels(wanted: Iterable[tuple[list[tuple[str, str]], dict[str, Package]]], series: str = "NAME") -> None:
    """Refuse if pip may only look into folders, and these lack wheels for requirements that nothing installed meets."""
    folders = _only_folders()
    if folders is None:
        return
    target = wheels.here()
    missing: dict[str, None] = {}
    for roots, seen in wanted:

        def find(need: Need, seen: dict[str, Package] = seen) -> Package | None:
            package = seen.get(need.name)
            if package and need.specifier.contains(package.version, prereleases=True):
                return package
            wheel = wheels.best(folders, need, target)
            try:
                return wheels.read(wheel) if wheel else None
            except VelocityError as error:
                refuse(str(error))

        missing |= dict.fromkeys(f"  no wheel for {need}" for need in wheels.unmet(roots, find, target.markers))
    if missing:
        listed = "\n".join(missing)
        refuse(
            f"PIP_NO_INDEX is set, and {' and '.join(map(str, folders)) or 'an empty PIP_FIND_LINKS'} has\n{listed}\n"
            "On a machine with a network, this fetches them: "
            f"ale-velocity wheelhouse --series {series} --python {THIS_PYTHON} -d DIR"
        )
