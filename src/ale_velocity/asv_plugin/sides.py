"""The two sides of a comparison: what is stored for a commit, and what of it can be compared."""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asv import util
from asv.commands.compare import unroll_result
from asv.environment import iter_matrix
from asv.machine import Machine, iter_machine_files
from asv.results import iter_results_for_machine_and_hash

from ale_velocity.asv_plugin.records import CellRecords, cell_name
from ale_velocity.asv_plugin.refusal import refuse
from ale_velocity.measure import PROTOCOLS
from ale_velocity.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MACHINE_FACTS = ("arch", "cpu", "num_cpu")  # what one machine name may not hide a change of
DECIDED_BY_MACHINE = "auto"  # the environment replaces it by what the machine has, so any value fits

Place = tuple[str, str]  # a benchmark with its parameters, and machine/environment
Stored = tuple[Any, ...]  # what `asv continuous` hands to `print_table` for each benchmark of a result


@dataclass(frozen=True)
class Cell:
    """One benchmark, with its parameters, on one side.

    `value` is None where it failed and NaN where it was skipped or never run. `samples` are windows, `reps` of them a
    process; None where they were not recorded, or where nothing says how many a process gave. `behaviour` is the
    fingerprint of the work, and `paces` what each process read of the machine's pace, where records have them.
    """

    benchmark: str
    value: float | None = math.nan
    stats: dict[str, float] | None = None
    samples: list[float] | None = None
    version: str | None = None
    reps: int | None = None
    behaviour: str | None = None
    paces: Sequence[Sequence[float]] = ()


@dataclass(frozen=True)
class Side:
    """The results of one commit: its cells, its machine's facts by environment, and how much was left out, and why."""

    commit: str
    name: str
    cells: dict[Place, Cell]
    facts: dict[str, dict[str, Any]]
    ignored: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Source:
    """Where sides are read from: asv's configuration, the suite, and the machine.

    `env_names` are the environments asked for by -E, None for those of the matrix.
    """

    conf: Any
    benchmarks: Any
    machine: str | None
    env_names: list[str] | None

    def stored(self, commit: str, name: str | None) -> Side:
        """Read a commit's results from the results folder; refuse, with where they are, if there are none."""
        ignored: Counter[str] = Counter()
        results = []
        for result in iter_results_for_machine_and_hash(self.conf.results_dir, self.machine, commit):
            if self.env_names is not None:
                if result.env_name in self.env_names:
                    results.append(result)
            elif foreign := foreign_settings(self.conf, result):
                ignored[f"the matrix of asv.conf.json does not have {', '.join(foreign)}"] += 1
            else:
                results.append(result)
        return self._side(commit, name, results, _rows(results), ignored)

    def measured(self, commit: str, name: str | None, rows: Iterable[Stored]) -> Side:
        """Take what `asv continuous` has just measured."""
        rows = list(rows)
        environments = {row[7] for row in rows}
        machines = {row[6] for row in rows}
        results = [
            result
            for machine in machines
            for result in iter_results_for_machine_and_hash(self.conf.results_dir, machine, commit)
            if result.env_name in environments
        ]
        return self._side(commit, name, results, rows, Counter())

    def _side(
        self, commit: str, name: str | None, results: list[Any], rows: Iterable[Stored], ignored: Counter[str]
    ) -> Side:
        facts = {result.env_name: {fact: result.params.get(fact) for fact in MACHINE_FACTS} for result in results}
        reps = {result.env_name: _reps(result) for result in results}
        machines = {result.params["machine"] for result in results}
        records = {name: CellRecords(self.conf.results_dir, name) for name in machines}
        side = Side(commit, name or commit[: self.conf.hash_length], {}, facts, ignored)
        for key, params, values, stats, samples, version, machine, environment in rows:
            if key not in self.benchmarks:
                ignored[f"the suite no longer has the benchmark {key}"] += 1
                continue
            cells = unroll_result(key, params, values, stats, samples)
            for number, (cell, value, stat, windows) in enumerate(cells):
                recorded = commit, environment, cell_name(key, params, number)
                behaviour = records[machine].behaviour(*recorded)
                paces = records[machine].paces(*recorded, len(windows or ()))
                place = cell, f"{machine}/{environment}"
                side.cells[place] = Cell(key, value, stat, windows, version, reps.get(environment), behaviour, paces)
        if not side.cells:
            refuse(self._nothing_found(side))
        return side

    def _nothing_found(self, side: Side) -> str:
        machines = sorted(util.load_json(path)["machine"] for path in iter_machine_files(self.conf.results_dir))
        elsewhere = [
            machine
            for machine in machines
            if machine != self.machine
            and any(iter_results_for_machine_and_hash(self.conf.results_dir, machine, side.commit))
        ]
        message = f"there are no results for {side.name} ({side.commit[:8]}) on machine {self.machine}"
        message += "".join(f"; ignored: {number}, since {why}" for why, number in side.ignored.items())
        if self.env_names is not None:
            stored = iter_results_for_machine_and_hash(self.conf.results_dir, self.machine, side.commit)
            message += "".join(f"; -E leaves out {result.env_name}" for result in stored)
        if elsewhere:
            message += f"; it was measured on {', '.join(elsewhere)}, and only one machine's results are comparable"
        return message


def require_same_machine(before: Side, after: Side) -> None:
    """Refuse where one machine name stands for two machines."""
    for environment in before.facts.keys() & after.facts.keys():
        for fact, value in before.facts[environment].items():
            other = after.facts[environment][fact]
            if value != other:
                refuse(
                    f"the two sides were measured on different machines under one name: {fact} is {value!r} for "
                    f"{before.name} and {other!r} for {after.name}. Measure both on one machine, and give each "
                    f"machine its own name ({PREFIX}MACHINE)"
                )


def foreign_settings(conf: Any, result: Any) -> list[str]:
    """Return the settings of a result, as NAME=value, that the matrix does not have (any more); empty if it fits.

    As for a run, a variable of the caller's environment overrides the matrix. Python's version is no setting here:
    who looks at results need not have the Python that measured them.
    """
    allowed: dict[str, set[str]] = {}
    for combination in iter_matrix(conf.environment_type, conf.pythons, conf):
        for (kind, name), value in combination.items():
            wanted = os.environ.get(name, value) if kind.startswith("env") else value
            allowed.setdefault(name, set()).add(wanted)
    facts = {name for name, _ in Machine.fields} | {"python"}
    requirements = {name: value for name, value in result.params.items() if name not in facts}
    return [
        f"{name}={value}"
        for name, value in sorted({**requirements, **result.env_vars}.items())
        if not allowed.get(name, set()) & {value, DECIDED_BY_MACHINE}
    ]


def _rows(results: Iterable[Any]) -> Iterator[Stored]:
    for result in results:
        for key in result.get_all_result_keys():
            params = result.get_result_params(key)
            columns = (result.get_result_value, result.get_result_stats, result.get_result_samples)
            version = result.benchmark_version.get(key)
            yield key, params, *(of(key, params) for of in columns), version, result.params["machine"], result.env_name


def _reps(result: Any) -> int | None:
    """Return how many samples each process gave, None for results of another suite than ours."""
    protocol = PROTOCOLS.get(result.env_vars.get(PREFIX + "PROTOCOL"))
    return protocol.reps if protocol else None
