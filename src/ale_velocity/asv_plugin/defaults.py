"""Defaults of asv that do not suit cells that take minutes, and scripts that nobody watches.

asv drops samples unless told `--record-samples`, though verdicts need them; it saves results only when a release
is finished, so that Ctrl-C loses hours, and by overwriting, so that a full disk or a kill at that moment loses what
was stored before; it says why a cell is n/a or failed only with `--show-stderr`; it asks about an unknown machine at a
prompt; and its `compare` does not take this machine's results where another's lie beside them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from asv import util

from ale_velocity.asv_plugin import machine
from ale_velocity.asv_plugin.points import Point

if TYPE_CHECKING:
    from collections.abc import Callable


def with_samples_and_saved(add_result: Callable[..., None]) -> Callable[..., None]:
    """Return the replacement of `Results.add_result`: samples are kept, and saved where asv would save at the end."""

    def add_and_save(self: Any, *args: Any, **kwargs: Any) -> None:
        add_result(self, *args, **{**kwargs, "record_samples": True})
        if hasattr(self, "save_into"):
            self.save(self.save_into)

    return add_and_save


def remembered(load_data: Callable[..., None]) -> Callable[..., None]:
    """Return the replacement of `Results.load_data`, which asv calls with the folder that it will save into."""

    def load_and_remember(self: Any, result_dir: str) -> None:
        load_data(self, result_dir)
        self.save_into = result_dir

    return load_and_remember


def whole_or_not_at_all(write_json: Callable[..., None]) -> Callable[..., None]:
    """Return the replacement of asv's `write_json`: a file is replaced once the new one is whole."""

    def write(path: str, data: Any, api_version: int | None = None, compact: bool = False) -> None:
        part = Path(f"{path}.part")
        try:
            write_json(str(part), data, api_version, compact)
            part.replace(path)
        except OSError as error:
            raise util.UserError(
                f"{path} could not be written: {error.strerror}. What was stored before is kept: free some space, "
                "then go on with --skip-existing-successful"
            ) from error
        finally:
            part.unlink(missing_ok=True)

    return write


def with_reason(log_benchmark_result: Callable[..., None]) -> Callable[..., None]:
    """Return the replacement of `log_benchmark_result`: what a cell printed is the reason why it is n/a or failed."""

    def log_with_reason(results: Any, benchmark: Any, show_stderr: bool = True) -> None:  # noqa: ARG001
        log_benchmark_result(results, benchmark, show_stderr=True)

    return log_with_reason


REPLACED: dict[Point, Callable[[Any], Any]] = {
    Point("asv.commands.compare:Compare.run", "5cb3e098d332e284"): machine.this_one,
    Point("asv.machine:Machine.generate_machine_file", "f61cfe18abbb21c2"): machine.described_by_itself,
    Point("asv.machine:Machine.load", "5876ddd00d3dc108"): machine.remembered,
    Point("asv.machine:Machine.save", "69a24156344cb5de"): machine.unchanged,
    Point("asv.results:Results.add_result", "dc928ee1fcc5d90b"): with_samples_and_saved,
    Point("asv.results:Results.load_data", "b0bd39991505fa01"): remembered,
    Point("asv.util:write_json", "8d9e867b4b6f0880"): whole_or_not_at_all,
    Point("asv.runner:log_benchmark_result", "be04e79c0a2cd013"): with_reason,
}


def install() -> None:
    """Replace them, unless asv's code is not the one that the replacements were written for."""
    for point in REPLACED:
        point.check()
    for point, make in REPLACED.items():
        point.replace(make)
