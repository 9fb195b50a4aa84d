"""The two ways in which a measurement can be refused, and how commands end then."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

EXIT_ERROR = 2  # the same as argparse's for bad options
EXIT_INTERRUPTED = 130  # what shells report for a program ended by Ctrl-C


class VelocityError(Exception):
    """Something is wrong and the message says what, where and what to do."""


class NotAvailableError(VelocityError):
    """The stack or the machine lacks what this cell needs: the cell is n/a, not failed."""


def require_known(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise `VelocityError` for a name that is not known, with the nearest ones."""
    known = list(known)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known) or known
            raise VelocityError(f"no {what} '{name}'; did you mean {' or '.join(near)}?")
