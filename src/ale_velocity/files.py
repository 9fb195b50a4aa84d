"""Files that are never half-written."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Write a file, line ends as they are, so that a stop leaves either the old one or the new one.

    An old file's mode stays, and a link to it stays one.
    """
    target = path.resolve()
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        if target.exists():
            shutil.copymode(target, temporary)
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
