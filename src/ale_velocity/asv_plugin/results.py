"""A results file that cannot be read stops the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asv import util

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
