"""Everything of ours that asv runs, loaded through the `plugins` entry of asv.conf.json.

asv finds `Timeline` and `StackEnvironment` as subclasses of its own; `machine` replaces
one prompt, `defaults` three defaults; `direction` lists the functions of asv that are replaced
so that its commands are right for rates.
"""

from __future__ import annotations

from ale_velocity.asv_plugin import defaults, direction, machine
from ale_velocity.asv_plugin.environment import StackEnvironment
from ale_velocity.asv_plugin.repository import Timeline

__all__ = ["StackEnvironment", "Timeline", "setup"]


def setup() -> None:
    """Do what must be done once when asv loads the plugin."""
    direction.install()  # first: it compares asv's code with what it knows, before anything is replaced
    machine.never_ask()
    defaults.always_record_samples()
    defaults.save_after_each_benchmark()
    defaults.always_say_why()
