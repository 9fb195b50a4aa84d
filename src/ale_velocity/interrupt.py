"""What ends a command early: Ctrl-C, and the signals of schedulers and closed terminals, which are taken for it."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HANGUP = getattr(signal, "SIGHUP", None)  # Windows has none
STOPPING = [signal.SIGINT, signal.SIGTERM, *([HANGUP] if HANGUP else [])]


@contextlib.contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Raise `KeyboardInterrupt` for each of them, so that nothing a command started outlives it."""

    def interrupt(_signum: int, _frame: Any) -> None:
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield


@contextlib.contextmanager
def held_back() -> Iterator[list[int]]:
    """Keep back the signals, and yield those that came: a child would be lost that is just born."""
    came: list[int] = []
    with _handled(lambda signum, _frame: came.append(signum)):
        yield came


@contextlib.contextmanager
def _handled(handler: Callable[[int, Any], None]) -> Iterator[None]:
    # A shell makes its background jobs ignore Ctrl-C, which then is meant for others; a signal sent to this process
    # is not. Hanging up is ignored only under nohup, and by intent.
    signals = [signum for signum in STOPPING if signum != HANGUP or signal.getsignal(signum) is not signal.SIG_IGN]
    before = {signum: signal.signal(signum, handler) for signum in signals}
    try:
        yield
    finally:
        for signum, earlier in before.items():
            signal.signal(signum, earlier)
