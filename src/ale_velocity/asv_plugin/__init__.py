"""Everything of ours that asv runs, loaded through the `plugins` entry of asv.conf.json.

asv finds `Timeline`, `StackEnvironment` and `Site` as subclasses of its own; `machine` replaces one prompt,
`site` adds to what publish does.
"""

from __future__ import annotations

from ale_velocity.asv_plugin import machine, site
from ale_velocity.asv_plugin.environment import StackEnvironment
from ale_velocity.asv_plugin.repository import Timeline
from ale_velocity.asv_plugin.site import Site

__all__ = ["Site", "StackEnvironment", "Timeline", "setup"]


def setup() -> None:
    """Do what must be done once when asv loads the plugin."""
    machine.never_ask()
    site.hook()
