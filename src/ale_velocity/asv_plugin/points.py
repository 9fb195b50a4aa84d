"""Every place where the plugin touches asv's code, each known by a digest of that code.

asv has no hook for what the plugin mends, so it replaces a few functions. A replacement is right only for the code
around it, so before anything is replaced every point is compared with asv 0.6.6; on any difference the plugin stops.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ale_velocity.asv_plugin.refusal import refuse

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

SUPPORTED = "0.6.6"
# What asv would call a direction of its own, if issue 1617 is answered; 0.6.6 has no such word.
DIRECTION = re.compile(r"\b(?:higher|larger|bigger|greater|more|lower|smaller|less)_is_better\b")
DIRECTION_MODULES = ("asv.benchmarks", "asv.commands.compare", "asv_runner.benchmarks._base")


@dataclass(frozen=True)
class Point:
    """A function of asv, as `module:qualified.name`, and the first 16 hex digits of its source's SHA-256."""

    name: str
    digest: str

    def check(self) -> None:
        """Refuse unless the function exists and its source is the one the plugin was written for."""
        owner, attribute = self._place()
        found = owner and inspect.getattr_static(owner, attribute, None)
        if not found:
            self._refuse("is gone")
        if source_digest(_plain(found)) != self.digest:
            self._refuse("is not the code that the plugin was written for")

    def replace(self, make: Callable[[Any], Any]) -> None:
        """Put `make(original)` in the function's place; a class or static method stays one."""
        owner, attribute = self._place()
        found = inspect.getattr_static(owner, attribute)
        replacement = make(getattr(found, "__func__", found))
        kind = type(found) if isinstance(found, (classmethod, staticmethod)) else None
        setattr(owner, attribute, kind(replacement) if kind else replacement)

    def _place(self) -> tuple[Any, str]:
        module, _, path = self.name.partition(":")
        *classes, attribute = path.split(".")
        try:
            owner: Any = importlib.import_module(module)
        except ImportError:
            return None, attribute
        for name in classes:
            owner = getattr(owner, name, None)
        return owner, attribute

    def _refuse(self, what: str) -> None:
        refuse(
            f"{self.name} of asv {version('asv')} {what}. Verdicts and kept results rest on it, and a guess could "
            f"call a loss a gain: install asv=={SUPPORTED}, which ale-velocity's asv plugin supports"
        )


def _plain(found: Any) -> Any:
    """Return the function as asv wrote it, from under a class or static method and other wrappers."""
    return inspect.unwrap(getattr(found, "__func__", found))


def source_digest(function: Any) -> str:
    """Return the first 16 hex digits of the SHA-256 of a function's source."""
    return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:16]


def own_direction(*modules: ModuleType) -> str | None:
    """Return asv's own word for a direction if its sources have one, with its place, else None."""
    for module in modules or map(importlib.import_module, DIRECTION_MODULES):
        if found := DIRECTION.search(inspect.getsource(module)):
            return f"{found[0]} in {module.__name__}"
    return None
