"""Write the manifest as a git repository: a branch a series, a commit and a tag a release.

Author, dates and bytes are fixed, so one manifest gives the same hashes on every machine, and results
measured anywhere meet. History only grows: git refuses a branch whose old tip the new one does not contain.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from ale_velocity.errors import VelocityError
from ale_velocity.timeline import manifest

if TYPE_CHECKING:
    from pathlib import Path

AUTHOR = "ale-velocity timeline <timeline@ale-velocity.invalid>"
PROJECT = "ale-timeline"


class TimelineError(VelocityError):
    """The repository could not be written."""


def repository_path(manifest_path: Path) -> Path:
    """Where the timeline of a manifest lives: a bare repository, ignored by ours, next to asv's environments."""
    return manifest_path.absolute().parent / ".asv" / "timeline.git"


def build(manifest_path: Path, *, rewrite: bool = False) -> dict[str, str]:
    """Bring the repository up to date with the manifest and return each release's commit hash by name.

    With `rewrite` the repository is written anew; without it a changed history is a `TimelineError`, because
    stored results would lose their commits.
    """
    series = manifest.load(manifest_path)
    repository = repository_path(manifest_path)
    repository.parent.mkdir(parents=True, exist_ok=True)
    if rewrite:
        shutil.rmtree(repository, ignore_errors=True)
    _git("init", "--quiet", "--bare", "--initial-branch", series[0].name, str(repository))
    done = _run(["-C", str(repository), "fast-import", "--quiet"], input_bytes=fast_import_stream(series))
    if done.returncode:
        raise TimelineError(
            f"{manifest_path}: a release that already has a commit was changed or removed, so results stored under "
            "the old hashes would be lost. Put the change into a new series, or, where nothing was measured yet, run "
            f"'ale-velocity timeline build --rewrite'.\ngit says: {done.stderr.decode(errors='replace').strip()}"
        )
    return hashes(repository)


def hashes(repository: Path) -> dict[str, str]:
    """Return the commit hash of every release (tag) in the repository."""
    lines = _git("-C", str(repository), "for-each-ref", "--format=%(refname:strip=2) %(objectname)", "refs/tags")
    return dict(line.split() for line in lines.splitlines())


def fast_import_stream(series: tuple[manifest.Series, ...]) -> bytes:
    """Return the whole timeline in the format of git fast-import, each branch from its own root."""
    parts: list[bytes] = [b"feature done\n"]
    mark = 0
    for one in series:
        for index, release in enumerate(one.releases):
            mark += 1
            seconds = int(release.date.timestamp())
            parts += [
                f"commit refs/heads/{one.name}\nmark :{mark}\n".encode(),
                f"author {AUTHOR} {seconds} +0000\ncommitter {AUTHOR} {seconds} +0000\n".encode(),
                _data(release.name),
                f"from :{mark - 1}\n".encode() if index else b"",
                b"M 100644 inline pyproject.toml\n",
                _data(project_file(one, release)),
                f"reset refs/tags/{release.name}\nfrom :{mark}\n\n".encode(),
            ]
    parts.append(b"done\n")
    return b"".join(parts)


def project_file(series: manifest.Series, release: manifest.Release) -> str:
    """Return the pyproject.toml of a commit: an empty package whose dependencies are the stack.

    Its version is unique to the commit, or pip would take the next commit for already installed.
    """
    local = series.name.replace("-", ".")
    # A JSON string is a TOML string too.
    requirements = "".join(f"    {json.dumps(requirement)},\n" for requirement in release.requirements)
    return (
        "[build-system]\n"
        'requires = ["setuptools"]\n'
        'build-backend = "setuptools.build_meta"\n\n'
        "[project]\n"
        f'name = "{PROJECT}"\n'
        f'version = "{release.version.partition("+")[0]}+{local}"\n'
        f'requires-python = "{release.requires_python}"\n'
        f"dependencies = [\n{requirements}]\n\n"
        "[tool.setuptools]\n"
        "py-modules = []\n"
    )


def _data(text: str) -> bytes:
    content = text.encode()
    return b"data %d\n%s\n" % (len(content), content)


def _git(*args: str) -> str:
    done = _run(list(args))
    if done.returncode:
        raise TimelineError(f"git {' '.join(args)} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode()


def _run(args: list[str], input_bytes: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    # The caller's own repository must not leak in (a hook sets GIT_DIR, for example).
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        return subprocess.run(["git", *args], input=input_bytes, capture_output=True, check=False, env=environment)
    except FileNotFoundError as error:
        raise TimelineError("git is not installed, and the timeline is a git repository: install git") from error
