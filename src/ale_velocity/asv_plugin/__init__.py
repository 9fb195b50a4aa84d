"""Everything of ours that asv runs, loaded through the `plugins` entry of asv.conf.json.

asv finds `Timeline` and `StackEnvironment` as subclasses of its own; `machine` replaces
one prompt, `defaults` three defaults.
"""

from __future__ import annotations

from ale_velocity.asv_plugin import defaults, machine
from ale_velocity.asv_plugin.environment import StackEnvironment
from ale_velocity.asv_plugin.repository import Timeline

__all__ = ["StackEnvironment", "Timeline", "setup"]


def setup() -> None:
    """Do what must be done once when asv loads the plugin."""
    machine.never_ask()
    defaults.always_record_samples()
    defaults.save_after_each_benchmark()
    defaults.always_say_why()
