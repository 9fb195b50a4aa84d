"""Scripts of others: what happens when npm fails, refuses, or is no longer needed."""

from __future__ import annotations

import shutil
from pathlib import Path

import asv
import pytest

from ale_velocity.errors import VelocityError
from ale_velocity.site import assets

STATIC = Path(assets.__file__).parent / "static"
ASV_INDEX = Path(asv.__file__).parent / "www" / "index.html"


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """A made-up npm on an otherwise empty PATH; `npm(script)` writes it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def write(script):
        (folder / "npm").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "npm").chmod(0o755)

    return write


def test_a_changed_package_is_an_error(npm, tmp_path):
    """A wrong hash is no reason to load the script from somewhere else."""
    npm("echo 'npm error code EINTEGRITY' >&2; exit 1")
    with pytest.raises(VelocityError, match="whose hash is not that of package-lock.json") as caught:
        assets.install(STATIC, tmp_path / "cache", tmp_path / "html")
    assert not isinstance(caught.value, assets.NpmUnavailableError)


def test_no_network_is_said(npm, tmp_path):
    """npm's own words are passed on, and nothing half-done is taken for a cache later."""
    npm("echo 'npm error network ENOTFOUND' >&2; exit 1")
    with pytest.raises(assets.NpmUnavailableError, match="ENOTFOUND"):
        assets.install(STATIC, tmp_path / "cache", tmp_path / "html")
    assert not (tmp_path / "cache").exists()


def test_no_npm_is_said(npm, tmp_path):
    """With the command that brings it."""
    with pytest.raises(assets.NpmUnavailableError, match="apt-get install npm"):
        assets.install(STATIC, tmp_path / "cache", tmp_path / "html")


def test_what_is_there_is_not_fetched_again(npm, tmp_path):
    """Once the packages of this lock file are there, publishing needs neither npm nor a network."""
    cache = tmp_path / "cache"
    for asset in (*assets.ASV_ASSETS, assets.PLOTLY):
        path = cache / "node_modules" / asset.package / asset.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(asset.path)
    for name in assets.LOCK_FILES:
        shutil.copyfile(STATIC / name, cache / name)
    npm("exit 1")
    assets.install(STATIC, cache, tmp_path / "html")
    assert (tmp_path / "html" / assets.PLOTLY.address).read_text() == assets.PLOTLY.path
    (cache / "package-lock.json").write_text("{}")
    with pytest.raises(assets.NpmUnavailableError):
        assets.install(STATIC, cache, tmp_path / "html")


def test_asv_page_loads_nothing_from_elsewhere():
    """Links to read remain; scripts and styles are ours. One that nobody brings is an error that names it."""
    page = assets.make_local(ASV_INDEX.read_text())
    assert page.count('"vendor/') == len(assets.ASV_ASSETS)
    with pytest.raises(VelocityError, match="asv's page loads https://other.invalid/x.js, which"):
        assets.make_local(page + '<script src="https://other.invalid/x.js">')
