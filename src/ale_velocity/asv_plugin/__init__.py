"""Everything of ours that asv runs, loaded through the `plugins` entry of asv.conf.json.

asv finds `Timeline` and `StackEnvironment` as subclasses of its own; `machine` replaces
one prompt, `samples` one option's default; `direction` lists the functions of asv that are
replaced so that its commands are right for rates.
"""

from __future__ import annotations

from ale_velocity.asv_plugin import direction, machine, samples
from ale_velocity.asv_plugin.environment import StackEnvironment
from ale_velocity.asv_plugin.repository import Timeline

__all__ = ["StackEnvironment", "Timeline", "setup"]


def setup() -> None:
    """Do what must be done once when asv loads the plugin."""
    direction.install()  # first: it compares asv's code with what it knows, before anything is replaced
    machine.never_ask()
    samples.always_record()
