"""asv's view of the timeline: a git repository that is generated when asv opens it."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from asv import util
from asv.plugins.git import Git
from asv.repo import NoSuchNameError

from ale_velocity.errors import VelocityError
from ale_velocity.timeline import manifest, writer


class Timeline(Git):
    """`"dvcs": "timeline"` of asv.conf.json, with the manifest as its `"repo"`."""

    dvcs = "timeline"

    def __init__(self, url: str, mirror_path: str) -> None:
        # Git's answers, since the list of losses asks for the same few releases thousands of times.
        self._ranges: dict[str, list[str]] = {}
        self._release_names: dict[str, Any] = {}
        manifest_path = Path(url)
        try:
            hashes = writer.build(manifest_path)
            self.series = manifest.load(manifest_path)
        except VelocityError as error:
            raise util.UserError(str(error)) from error
        self._names = [*sorted(hashes), *(one.name for one in self.series)]
        self._releases = {hashes[name]: release for name, release in manifest.all_releases(self.series).items()}
        super().__init__(str(writer.repository_path(manifest_path)), mirror_path)

    @classmethod
    def url_match(cls, url: str) -> bool:
        """Match a manifest."""
        return url.endswith(".toml")

    def get_hash_from_name(self, name: str) -> Any:
        """Return the commit of a release, branch or hash; an unknown name is answered with the nearest."""
        try:
            return super().get_hash_from_name(name)
        except NoSuchNameError as error:
            raise util.UserError(self._unknown(name)) from error

    def get_hashes_from_range(self, range_spec: str) -> Any:
        """Return the commits of a range, newest first; an unknown name in it is answered with the nearest."""
        try:
            if range_spec not in self._ranges:
                self._ranges[range_spec] = super().get_hashes_from_range(range_spec)
        except util.ProcessError as error:
            raise util.UserError(self._unknown(range_spec)) from error
        return list(self._ranges[range_spec])

    def get_name_from_hash(self, commit: str) -> Any:
        """Return the release of a commit, None for a commit that is none."""
        if commit not in self._release_names:
            self._release_names[commit] = super().get_name_from_hash(commit)
        return self._release_names[commit]

    def get_release(self, commit: str) -> manifest.Release:
        """Return the release that a commit is; one that is none is answered like an unknown name."""
        if commit not in self._releases:
            raise util.UserError(self._unknown(commit))
        return self._releases[commit]

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name.strip("^!"), self._names, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "see 'ale-velocity timeline list'"
        return f"the timeline has no '{name}': {hint}"
