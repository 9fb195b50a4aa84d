"""The machine that results are filed under: named once, never asked for."""

from __future__ import annotations

import os
from typing import Any

from asv.console import log
from asv.machine import Machine

from ale_velocity.settings import PREFIX

_loaded: list[str] = []


def name() -> str:
    """Return the name under which this command files its results."""
    return _loaded[-1] if _loaded else Machine.get_unique_machine_name()


def never_ask() -> None:
    """Describe an unknown machine by asv's defaults instead of asking at a prompt, which stops scripts.

    ALE_VELOCITY_MACHINE fixes the name: host names of laptops and cloud nodes change and split a history.
    """
    Machine.hardcoded_machine_name = os.environ.get(PREFIX + "MACHINE") or None
    Machine.generate_machine_file = staticmethod(_defaults)
    Machine.load = classmethod(_remembering(Machine.load.__func__))


def _defaults(use_defaults: bool = False) -> dict[str, Any]:  # noqa: ARG001 (asv's signature)
    values = {**Machine.get_defaults(), "machine": Machine.get_unique_machine_name()}
    log.info(f"New machine '{values['machine']}': {values['cpu']}, {values['num_cpu']} CPUs (see 'asv machine')")
    return values


def _remembering(load: Any) -> Any:
    def load_and_remember(cls: Any, *args: Any, **kwargs: Any) -> Any:
        loaded = load(cls, *args, **kwargs)
        _loaded.append(loaded.machine)
        return loaded

    return load_and_remember
