"""Everything of ours that asv runs, loaded through the `plugins` entry of asv.conf.json.

asv finds `Timeline`, `StackEnvironment` and `Site` as subclasses of its own; `machine` replaces one prompt,
`defaults` three defaults, and `site` adds to what publish does.
"""

from __future__ import annotations

from ale_velocity.asv_plugin import defaults, machine, site
from ale_velocity.asv_plugin.environment import StackEnvironment
from ale_velocity.asv_plugin.repository import Timeline
from ale_velocity.asv_plugin.site import Site

__all__ = ["Site", "StackEnvironment", "Timeline", "setup"]


def setup() -> None:
    """Do what must be done once when asv loads the plugin."""
    machine.never_ask()
    defaults.always_record_samples()
    defaults.save_after_each_benchmark()
    defaults.always_say_why()
    site.hook()
