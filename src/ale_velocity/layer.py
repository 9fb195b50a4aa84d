"""Lay a virtual environment over folders of installed packages: its own packages come first, then theirs."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def site_packages(environment: Path) -> Path:
    """Return the folder of a virtual environment that its packages are installed into."""
    prefix = {"base": str(environment), "platbase": str(environment)}
    return Path(sysconfig.get_path("purelib", "posix_prefix", prefix))


def lay_over(environment: Path, folders: Sequence[Path]) -> bool:
    """Let the environment see the packages in `folders` after its own; return whether it did not before."""
    # Python appends the folders that a .pth file names to its search path.
    path = site_packages(environment) / "held.pth"
    content = "".join(f"{folder}\n" for folder in folders)
    if path.exists() and path.read_text(encoding="utf-8") == content:
        return False
    path.write_text(content, encoding="utf-8")
    return True
