"""Read a package's releases from an index: the simple API in JSON, with upload times (PEP 691 and 700)."""

from __future__ import annotations

import datetime as dt
import functools
import http.client
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from packaging import tags
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from ale_velocity.errors import VelocityError

CONTENT_TYPE = "application/vnd.pypi.simple.v1+json"
TIMEOUT_S = 30
# CPython 3.10 is the first that the suite runs on; a wheel that suits the last one here has no upper limit.
MINORS = range(10, 40)
PLATFORM = "linux_x86_64"
UPLOAD_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z")


@dataclass(frozen=True)
class File:
    """A wheel or a source archive: `uploaded` is in UTC, in whole seconds; a source archive has no `wheel_tags`."""

    version: Version
    uploaded: dt.datetime
    wheel_tags: frozenset[tags.Tag]
    requires_python: SpecifierSet
    yanked: bool


@dataclass(frozen=True)
class IndexRelease:
    """All files of one version."""

    version: Version
    files: tuple[File, ...]

    @property
    def date(self) -> dt.datetime:
        """When its first file was uploaded."""
        return min(file.uploaded for file in self.files)

    @property
    def yanked(self) -> bool:
        """Whether nothing of it is left to install."""
        return all(file.yanked for file in self.files)

    @property
    def python(self) -> str:
        """A specifier of the CPython versions that have a wheel for Linux on x86-64, empty if there is none."""
        minors = [minor for minor in MINORS if any(_suits(file, minor) for file in self.files)]
        if not minors:
            return ""
        first, last = minors[0], minors[-1]
        parts = [f">=3.{first}"] + [f"!=3.{minor}.*" for minor in range(first, last) if minor not in minors]
        if last != MINORS[-1]:
            parts.append(f"<3.{last + 1}")
        return ",".join(parts)


def default_url() -> str:
    """Return the index that pip would install from: its environment variable, its configuration or its default."""
    # Wide, so that the URL is on one line.
    environment = {**os.environ, "COLUMNS": "10000"}
    command = [sys.executable, "-m", "pip", "install", "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r"--index-url <url>.*?\(default:? (\S+?)\)", done.stdout)
    if not found:
        raise VelocityError("pip does not say which package index it uses: name one with --index URL")
    return found[1]


def releases(url: str, package: str) -> list[IndexRelease]:
    """Return a package's final releases, lowest version first; `VelocityError` if the index at `url` cannot tell."""
    page = f"{url.rstrip('/')}/{canonicalize_name(package)}/"
    by_version: dict[Version, list[File]] = {}
    answer = _answer(page)
    try:
        files = [file for item in answer["files"] if (file := _file(item))]
    except (KeyError, TypeError, AttributeError) as error:
        raise _unreadable(page, f"its JSON is not what PEP 691 says ({error!r})") from error
    except ValueError as error:
        raise _unreadable(page, str(error)) from error
    for file in files:
        if not file.version.is_prerelease and not file.version.local:
            by_version.setdefault(file.version, []).append(file)
    return [IndexRelease(version, tuple(files)) for version, files in sorted(by_version.items())]


def _answer(page: str) -> Any:
    if not page.startswith(("http://", "https://")):
        raise VelocityError(f"{page}: is no http or https address: name an index with --index URL")
    user, _, host = page.split("/")[2].rpartition("@")
    if user:
        raise VelocityError(
            f"{host}: the index's address holds a user's name, which is not sent from here: "
            "name an index that needs none with --index URL"
        )
    try:
        request = urllib.request.Request(page, headers={"Accept": CONTENT_TYPE, "User-Agent": "ale-velocity"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            content, kind = answer.read(), answer.headers.get_content_type()
    except urllib.error.HTTPError as error:
        raise VelocityError(
            f"{page}: the package index answers {error.code} {error.reason}: "
            "name one that has the package with --index URL, or try again later"
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise VelocityError(
            f"{page}: the package index does not answer ({reason or type(reason).__name__}): "
            "look at the network and at pip's proxy settings, name another with --index URL, or try again later"
        ) from error
    if not (kind == "application/json" or kind.endswith("+json")):
        raise _unreadable(page, f"it is {kind}, not JSON")
    try:
        return json.loads(content)
    except ValueError as error:
        raise _unreadable(page, f"its JSON is cut short or broken: {error}") from error


def _file(item: dict[str, Any]) -> File | None:
    """Return one file of an answer, None for one that pip would not install either."""
    name = item["filename"]
    try:
        if name.endswith(".whl"):
            _, version, _, wheel_tags = parse_wheel_filename(name)
        else:
            _, version = parse_sdist_filename(name)
            wheel_tags = frozenset()
        requires_python = SpecifierSet(item.get("requires-python") or "")
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidSpecifier, InvalidVersion):
        return None
    uploaded = UPLOAD_TIME.fullmatch(item.get("upload-time") or "")
    if not uploaded:
        raise ValueError(f"it does not say when {name} was uploaded")
    return File(
        version=version,
        uploaded=dt.datetime.fromisoformat(uploaded[1] + "+00:00"),
        wheel_tags=wheel_tags,
        requires_python=requires_python,
        yanked=bool(item.get("yanked")),  # true, or the reason
    )


def _suits(file: File, minor: int) -> bool:
    """Whether pip on Linux and CPython 3.`minor`, in its latest patch release, may install this wheel."""
    if file.yanked or not file.requires_python.contains(f"3.{minor}.99"):
        return False
    return not _tags(minor).isdisjoint(map(_any_libc_version, file.wheel_tags))


@functools.cache
def _tags(minor: int) -> set[tags.Tag]:
    version, name = (3, minor), f"cp3{minor}"
    return {*tags.cpython_tags(version, [name], [PLATFORM]), *tags.compatible_tags(version, name, [PLATFORM])}


def _any_libc_version(tag: tags.Tag) -> tags.Tag:
    """Return the tag as if built here: which glibc a machine has is not a question of the interpreter."""
    is_linux = re.fullmatch(r"manylinux\w*_x86_64", tag.platform)
    return tags.Tag(tag.interpreter, tag.abi, PLATFORM) if is_linux else tag


def _unreadable(page: str, why: str) -> VelocityError:
    return VelocityError(
        f"{page}: the package index gives no list of releases with their upload times (PEP 691 and 700): {why}. "
        "Name another index with --index URL, or try again later"
    )
