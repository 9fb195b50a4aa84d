"""The machine that results are filed under: named once, never asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from asv import util
from asv.console import log
from asv.machine import Machine, MachineCollection

from ale_velocity import facts, pace
from ale_velocity.asv_plugin import records
from ale_velocity.asv_plugin.refusal import refuse
from ale_velocity.settings import PREFIX
from ale_velocity.stats import is_other_pace

if TYPE_CHECKING:
    from collections.abc import Callable

COMMON_PACES = (0.05, 0.5, 0.95)  # quantiles: between the outer two lies what is no other pace
_loaded: list[str] = []


def name() -> str:
    """Return the name under which this command files its results."""
    if _loaded:
        return _loaded[-1]
    given = Machine.get_unique_machine_name()
    try:
        return str(MachineCollection.load(given)["machine"])
    except util.UserError:  # not known yet
        return given


def use_given_name() -> None:
    """Take the name from ALE_VELOCITY_MACHINE: host names of laptops and cloud nodes change and split a history."""
    Machine.hardcoded_machine_name = os.environ.get(PREFIX + "MACHINE") or None


def described_by_itself(_ask: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of `Machine.generate_machine_file`: asv's defaults describe an unknown machine."""

    def describe(use_defaults: bool = False) -> dict[str, Any]:  # noqa: ARG001 (asv's signature)
        values = {**Machine.get_defaults(), "machine": Machine.get_unique_machine_name()}
        log.info(f"New machine '{values['machine']}': {values['cpu']}, {values['num_cpu']} CPUs (see 'asv machine')")
        return values

    return describe


def remembered(load: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of `Machine.load`, which knows the name that a command was given."""

    def load_and_remember(cls: Any, *args: Any, **kwargs: Any) -> Any:
        loaded = load(cls, *args, **kwargs)
        _loaded.append(loaded.machine)
        return loaded

    return load_and_remember


def unchanged(save: Callable[..., None]) -> Callable[..., None]:
    """Return the replacement of `Machine.save`: results of one name are of one machine.

    asv would write over the old description and go on, and the other hardware would look like another release's doing.
    The same hardware at another pace (a cloud machine's host is not always the same) is no error, but said.
    """

    def check_and_save(self: Any, results_dir: str) -> None:
        folder = Path(results_dir) / self.machine
        for before in records.read(folder / "machine.jsonl")[-1:]:
            now = facts.gather()
            if not facts.same_machine(facts.identity(before), facts.identity(now)):
                unset = f", or unset {' and '.join(now['variables'])}" if now["variables"] else ""
                refuse(
                    f"the results in {folder} are of another machine ({facts.in_words(before)}) than this one "
                    f"({facts.in_words(now)}): give this one a name of its own in {PREFIX}MACHINE{unset}"
                )
        warn_of_other_pace(folder, pace.read())
        save(self, results_dir)

    return check_and_save


def this_one(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of `Compare.run`: of several machines' results, this one's, unless told otherwise.

    asv would refuse to choose, and results of other machines lie beside one's own.
    """

    def run_for_this_one(cls: Any, conf: Any, *args: Any, machine: str | None = None, **kwargs: Any) -> Any:
        here = name()
        if machine is None and (Path(conf.results_dir) / here / "machine.json").is_file():
            machine = here
            log.info(f"Results of this machine, '{here}' (another's: --machine NAME)")
        return run(cls, conf, *args, machine=machine, **kwargs)

    return run_for_this_one


def warn_of_other_pace(folder: Path, now: float) -> None:
    """Say it where the fixed work of `pace` takes clearly more or less time `now` than it did beside stored results.

    A shared machine's pace goes up and down within each cell: one that was common among its readings is no other.
    """
    known = [pace_s for record in records.read(folder / "cells.jsonl") for pace_s in record.get("pace_s", ())]
    if not known:
        return
    quickest, usual, slowest = np.quantile(known, COMMON_PACES)
    if is_other_pace(np.clip(now, quickest, slowest) / now):
        log.warning(
            f"this machine's cores now run {usual / now:.2f} times as fast as when the results in {folder} were "
            "measured: a release measured now shows that too. Measure releases in turn: asv continuous, or "
            "ale-velocity duel"
        )
