"""What is read from results files: nothing of a broken one, and no failure of what was never run."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from asv import util
from asv.results import Results

from ale_velocity.asv_plugin.refusal import refuse

if TYPE_CHECKING:
    from collections.abc import Callable


def strictly(load: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of `Results.load`: asv would go on without a broken file, after one line of warning."""

    def load_or_refuse(cls: Any, path: str, machine_name: str | None = None) -> Any:
        try:
            return load(cls, path, machine_name)
        except (util.UserError, ValueError, TypeError, AttributeError) as error:  # what broken JSON raises inside asv
            refuse(f"the results file {path} cannot be read: {error}. Restore it from version control, or move it away")

    return load_or_refuse


def tried_only(get_result_value: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of `Results.get_result_value`: what a stored result does not have was never run.

    asv gives None, a failure, for parameters that a benchmark got after the result was stored, and writes it into the
    file with the next cell of that benchmark. Here they are NaN, as what was not asked for.
    """

    def get(results: Any, key: str, params: list[list[str]]) -> Any:
        stored = set(itertools.product(*results.get_result_params(key)))
        values = get_result_value(results, key, params)
        return [
            value if combination in stored else math.nan
            for combination, value in zip(itertools.product(*params), values, strict=True)
        ]

    return get


values_of = tried_only(Results.get_result_value)  # for what reads results without asv's commands
