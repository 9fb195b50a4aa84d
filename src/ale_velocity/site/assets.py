"""Scripts of others that the site needs, brought by npm at publish time and served from the site itself.

npm checks each package against the hash in static/package-lock.json. Plotly's basic bundle has the scatter charts,
logarithmic axes and picture export that the throughput page needs in 1.2 MB; the whole of Plotly is four times that.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ale_velocity.errors import VelocityError

if TYPE_CHECKING:
    from pathlib import Path

LOCK_FILES = ("package.json", "package-lock.json")
# What a package carries to say whose it is; flot-orderbars names its licence in package.json only.
LICENCE_FILES = ("LICENSE", "LICENSE.txt", "package.json")


@dataclass(frozen=True)
class Asset:
    """A file of an npm package, and a part of the address from which asv's page loads the same script."""

    package: str
    path: str
    asv_address: str

    @property
    def address(self) -> str:
        """Where the site serves it, from its root."""
        return f"vendor/{self.package}/{self.path}"


ASV_ASSETS = (
    Asset("jquery", "dist/jquery.min.js", "jquery-3.3.1.min.js"),
    Asset("flot", "jquery.flot.js", "jquery.flot.min.js"),
    Asset("flot", "jquery.flot.time.js", "jquery.flot.time.min.js"),
    Asset("flot", "jquery.flot.selection.js", "jquery.flot.selection.min.js"),
    Asset("flot", "jquery.flot.categories.js", "jquery.flot.categories.min.js"),
    Asset("flot-orderbars", "js/jquery.flot.orderBars.js", "jquery.flot.orderBars.js"),
    Asset("stupid-table-plugin", "stupidtable.min.js", "stupidtable.min.js"),
    Asset("blueimp-md5", "js/md5.min.js", "md5.min.js"),
    Asset("bootstrap", "dist/js/bootstrap.min.js", "bootstrap.min.js"),
    Asset("bootstrap", "dist/css/bootstrap.min.css", "bootstrap.min.css"),
)
PLOTLY = Asset("plotly.js-basic-dist-min", "plotly-basic.min.js", "")
PLOTLY_TAG = f'<script src="{PLOTLY.address}"></script>'
# The same bytes for a site that was published without npm; a test compares the hash with the package's file.
PLOTLY_CDN_TAG = (
    '<script src="https://cdn.jsdelivr.net/npm/plotly.js-basic-dist-min@4.1.1/plotly-basic.min.js" '
    'integrity="sha384-N2HZsG+IG/3J8CwhGGYz/kmzZ0sprpPWwjhor9ZI4lxuf47i9DXK2/NDGxMaJiEb" '
    'crossorigin="anonymous"></script>'
)


class NpmUnavailableError(VelocityError):
    """npm is not there, or cannot reach its packages; the message says which."""


def install(lock_folder: Path, cache: Path, html_dir: Path) -> None:
    """Copy all assets with their licences into `html_dir/vendor`; npm is asked only when the lock file changed.

    Raises `NpmUnavailableError` if npm cannot bring them, `VelocityError` if what it brought has another hash.
    """
    if not _is_current(lock_folder, cache):
        _download(lock_folder, cache)
    for asset in (*ASV_ASSETS, PLOTLY):
        package = cache / "node_modules" / asset.package
        target = html_dir / asset.address
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package / asset.path, target)
        for name in LICENCE_FILES:
            if (package / name).exists():
                shutil.copyfile(package / name, html_dir / "vendor" / asset.package / name)


def make_local(page: str) -> str:
    """Return asv's page with every script and style of another host replaced by ours.

    Raises `VelocityError` if one is left, which then needs a line in `ASV_ASSETS`.
    """
    for asset in ASV_ASSETS:
        file = re.escape(asset.asv_address)
        page = re.sub(rf'<script src="https:[^"]*/{file}"[^>]*>', f'<script src="{asset.address}">', page)
        page = re.sub(rf'<link rel="stylesheet" href="https:[^"]*/{file}"[^>]*>', _style(asset), page)
    if left := re.findall(r'<(?:script|link)[^>]*"(https?:[^"]*)"', page):
        raise VelocityError(f"asv's page loads {left[0]}, which ale_velocity.site.assets does not bring: add it there")
    return page


def _style(asset: Asset) -> str:
    return f'<link rel="stylesheet" href="{asset.address}">'


def _is_current(lock_folder: Path, cache: Path) -> bool:
    return all(
        (cache / name).exists() and (cache / name).read_bytes() == (lock_folder / name).read_bytes()
        for name in LOCK_FILES
    )


def _download(lock_folder: Path, cache: Path) -> None:
    """Run `npm ci` in a fresh folder, and put it in the cache's place once it is whole."""
    if shutil.which("npm") is None:
        raise NpmUnavailableError("npm is not installed (on Debian and Ubuntu: apt-get install npm)")
    fresh = cache.with_name(cache.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for name in LOCK_FILES:
        shutil.copyfile(lock_folder / name, fresh / name)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=fresh, capture_output=True, text=True, check=False)
    if done.returncode:
        if "EINTEGRITY" in done.stderr:
            raise VelocityError(f"npm refused a package whose hash is not that of package-lock.json:\n{done.stderr}")
        raise NpmUnavailableError(f"npm could not bring the site's scripts: {done.stderr.strip()}")
    shutil.rmtree(cache, ignore_errors=True)
    fresh.rename(cache)
