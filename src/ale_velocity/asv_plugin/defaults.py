"""Defaults of asv that do not suit cells that take minutes, and scripts that nobody watches.

asv drops samples unless told `--record-samples`, though verdicts need them; it saves results only when a release
is finished, so that Ctrl-C loses hours; it says why a cell is n/a or failed only with `--show-stderr`; and it asks
about an unknown machine at a prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def with_reason(log_benchmark_result: Callable[..., None]) -> Callable[..., None]:
    """Return the replacement of `log_benchmark_result`: what a cell printed is the reason why it is n/a or failed."""

    def log_with_reason(results: Any, benchmark: Any, show_stderr: bool = True) -> None:  # noqa: ARG001
        log_benchmark_result(results, benchmark, show_stderr=True)

    return log_with_reason


REPLACED: dict[Point, Callable[[Any], Any]] = {
    Point("asv.machine:Machine.generate_machine_file", "f61cfe18abbb21c2"): machine.described_by_itself,
    Point("asv.machine:Machine.load", "5876ddd00d3dc108"): machine.remembered,
    Point("asv.results:Results.add_result", "dc928ee1fcc5d90b"): with_samples_and_saved,
    Point("asv.results:Results.load_data", "b0bd39991505fa01"): remembered,
    Point("asv.runner:log_benchmark_result", "be04e79c0a2cd013"): with_reason,
}


def install() -> None:
    """Replace them, unless asv's code is not the one that the replacements were written for."""
    for point in REPLACED:
        point.check()
    for point, make in REPLACED.items():
        point.replace(make)
