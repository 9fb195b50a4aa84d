"""Everything of ours that asv runs, loaded through the `plugins` entry of asv.conf.json.

asv finds `Timeline`, `StackEnvironment`, `PreinstalledEnvironment` and `Site` as subclasses of its own. Where it has
no such place, functions of it are replaced: `direction` lists those that make its commands right for rates, `defaults`
those that suit long measurements, and `preinstalled` and `site` add to one each.
"""

from __future__ import annotations

from ale_velocity.asv_plugin import defaults, direction, machine, preinstalled, site
from ale_velocity.asv_plugin.environment import StackEnvironment
from ale_velocity.asv_plugin.preinstalled import PreinstalledEnvironment
from ale_velocity.asv_plugin.repository import Timeline
from ale_velocity.asv_plugin.site import Site

__all__ = ["PreinstalledEnvironment", "Site", "StackEnvironment", "Timeline", "setup"]


def setup() -> None:
    """Do what must be done once when asv loads the plugin."""
    site.install()
    direction.install()
    defaults.install()
    preinstalled.install()
    machine.use_given_name()
