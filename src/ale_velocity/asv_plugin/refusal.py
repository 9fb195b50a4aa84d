"""How the plugin ends an asv command that would mislead."""

from __future__ import annotations

from typing import NoReturn

from asv.console import log

EXIT_REFUSED = 2  # not asv's 1, which from `asv continuous` means slower


def refuse(message: str) -> NoReturn:
    """Say why and end the command with exit status 2; asv's own code cannot swallow it like a `UserError`."""
    log.error(message)
    log.flush()
    raise SystemExit(EXIT_REFUSED)
