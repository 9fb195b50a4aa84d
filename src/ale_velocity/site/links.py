"""Addresses: pages of the site from its root, and release notes elsewhere."""

from __future__ import annotations

HASH_LENGTH = 8  # hash_length of asv.conf.json: asv's pages link to release/ and so much of the hash
RELEASE_NOTES = {
    "ale-py": "https://github.com/Farama-Foundation/Arcade-Learning-Environment/releases/tag/v{}",
    "torch": "https://github.com/pytorch/pytorch/releases/tag/v{}",
}


def release_page(commit: str) -> str:
    """Return the address of a release's page, whole, so that it also opens from a file share."""
    return f"release/{commit[:HASH_LENGTH]}/index.html"


def release_notes(package: str, version: str) -> str:
    """Return the address of a version's notes, or an empty string where we know no page."""
    return RELEASE_NOTES.get(package, "").format(version)
