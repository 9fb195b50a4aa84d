"""Keep every window in the results file: verdicts count processes, and need their windows."""

from __future__ import annotations

from typing import Any

from asv.results import Results


def always_record() -> None:
    """Store samples whether or not `--record-samples` was given."""
    add_result = Results.add_result

    def add_result_with_samples(self: Any, *args: Any, **kwargs: Any) -> None:
        add_result(self, *args, **{**kwargs, "record_samples": True})

    Results.add_result = add_result_with_samples
