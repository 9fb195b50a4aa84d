"""Three defaults of asv that do not suit cells that take minutes.

asv drops samples unless told `--record-samples`, though verdicts need them; it saves results only when a release
is finished, so that Ctrl-C loses hours; and it says why a cell is n/a or failed only with `--show-stderr`.
"""

from __future__ import annotations

from typing import Any

from asv import runner
from asv.results import Results


def always_record_samples() -> None:
    """Store samples whether or not they were asked for."""
    add_result = Results.add_result

    def add_result_with_samples(self: Any, *args: Any, **kwargs: Any) -> None:
        add_result(self, *args, **{**kwargs, "record_samples": True})

    Results.add_result = add_result_with_samples


def save_after_each_benchmark() -> None:
    """Save as soon as a benchmark's cells are measured, wherever asv itself would save at the end.

    asv loads what a results folder holds just before it measures into it, and only then: that names the folder.
    """
    load_data, add_result = Results.load_data, Results.add_result

    def load_and_remember(self: Any, result_dir: str) -> None:
        load_data(self, result_dir)
        self.save_into = result_dir

    def add_and_save(self: Any, *args: Any, **kwargs: Any) -> None:
        add_result(self, *args, **kwargs)
        if hasattr(self, "save_into"):
            self.save(self.save_into)

    Results.load_data, Results.add_result = load_and_remember, add_and_save


def always_say_why() -> None:
    """Print what a cell printed: the reason where it is n/a or failed."""
    log_benchmark_result = runner.log_benchmark_result

    def log_with_reason(results: Any, benchmark: Any, show_stderr: bool = True) -> None:  # noqa: ARG001
        log_benchmark_result(results, benchmark, show_stderr=True)

    runner.log_benchmark_result = log_with_reason
