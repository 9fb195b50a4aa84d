"""Read asv's result files, and the records that cells keep beside them, as points."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asv import util
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.machine import iter_machine_files
from asv.results import iter_results

from ale_velocity.asv_plugin import records
from ale_velocity.asv_plugin.records import CellRecords
from ale_velocity.asv_plugin.results import values_of
from ale_velocity.errors import VelocityError
from ale_velocity.settings import PREFIX
from ale_velocity.site.order import natural_key
from ale_velocity.site.points import Line, Machine, Point, Results, Setup
from ale_velocity.timeline import manifest, writer

if TYPE_CHECKING:
    from collections.abc import Iterator

# asv's description of a machine, and what is kept beside its results: words for people by the name of the fact.
MACHINE_FACTS = {"cpu": "CPU", "num_cpu": "CPUs", "ram": "memory", "os": "system", "arch": "architecture"}


def read_config(path: Path) -> Results:
    """As `read`, from the path of an asv configuration file, whose paths are relative to it."""
    conf = load_config(path)
    try:
        return read(conf)
    except util.UserError as error:
        raise VelocityError(f"{path}: {error}") from error


def load_config(path: Path) -> Any:
    """Return an asv configuration with absolute paths."""
    if not path.is_file():
        raise VelocityError(f"{path} is no file: run this in the repository, or give --config")
    try:
        conf = Config.load(str(path))
    except util.UserError as error:
        raise VelocityError(f"{path}: {error}") from error
    for name in ("repo", "results_dir", "benchmark_dir", "env_dir"):
        setattr(conf, name, str(path.absolute().parent / getattr(conf, name)))
    return conf


def read(conf: Any) -> Results:
    """Return everything in the results folder of an asv configuration that belongs to its timeline."""
    manifest_path = Path(conf.repo)
    hashes = writer.build(manifest_path)
    series = manifest.load(manifest_path)
    places = {hashes[release.name]: (one.name, release) for one in series for release in one.releases}
    benchmarks = Benchmarks.load(conf)
    machine_files = sorted(map(Path, iter_machine_files(conf.results_dir)), key=lambda path: natural_key(str(path)))
    cells = {path.parent.name: CellRecords(conf.results_dir, path.parent.name) for path in machine_files}
    points: list[Point] = []
    left_out: Counter[str] = Counter()
    for result in iter_results(conf.results_dir):
        if result.commit_hash not in places:
            left_out[f"of commit {result.commit_hash[:8]}, which is no release of the timeline"] += 1
            continue
        keys = result.get_result_keys(benchmarks)
        for key in result.get_all_result_keys() - keys:
            left_out[f"of {key}, measured by another version of it"] += 1
        for key in sorted(keys):
            of_machine = cells[result.params["machine"]]
            points += _points(result, benchmarks[key], *places[result.commit_hash], of_machine)
    return Results(
        series,
        hashes,
        tuple(points),
        tuple(_machine(path, cells[path.parent.name]) for path in machine_files),
        tuple(f"{number} stored result{'s' * (number > 1)} {reason}" for reason, number in sorted(left_out.items())),
    )


def _points(
    result: Any, benchmark: dict[str, Any], series: str, release: manifest.Release, cells: CellRecords
) -> Iterator[Point]:
    key, params = benchmark["name"], benchmark["params"]
    setup = _setup(result)
    started_at = result.started_at.get(key)
    measured_at = dt.datetime.fromtimestamp(started_at / 1000, dt.timezone.utc) if started_at else None
    values = values_of(result, key, params)
    samples = result.get_result_samples(key, params)
    if not params:
        values, samples = values or [None], samples or [None]
    for place, (combination, value, windows) in enumerate(
        zip(itertools.product(*params), values, samples, strict=True)
    ):
        words = tuple(zip(benchmark["param_names"], (word.strip("'") for word in combination), strict=True))
        line = Line(series, setup, key, words, place)
        cell = result.commit_hash, result.env_name, records.cell_name(key, params, place)
        record = cells.record(*cell)
        if value is not None and math.isnan(value) and not record:
            continue  # asv stores the same for what was not asked for: a cell that is n/a has a record that says why
        if value is None or math.isnan(value):
            status = "failed" if value is None else "n/a"
            yield Point(line, release, benchmark["unit"], status, reason=record.get("reason", ""))
            continue
        yield Point(
            line,
            release,
            benchmark["unit"],
            "measured",
            tuple(windows or ()),
            value,
            measured_at=measured_at,
            updates_per_env_step=record.get("facts", {}).get("updates_per_env_step"),
            behaviour=cells.behaviour(*cell),
            paces=tuple(map(tuple, cells.paces(*cell, len(windows or ())))),
        )


def _setup(result: Any) -> Setup:
    variables = {name.removeprefix(PREFIX).lower(): value for name, value in result.env_vars.items()}
    names = ("protocol", "device", "game", "torch_threads")
    return Setup(
        machine=result.params["machine"],
        python=result.params.get("python", ""),
        **{name: variables.get(name, "") for name in names},
    )


def _machine(path: Path, cells: CellRecords) -> Machine:
    described = util.load_json(str(path))
    facts = {label: str(described[key]) for key, label in MACHINE_FACTS.items() if described.get(key)}
    if facts.get("memory", "").isdecimal():
        facts["memory"] = f"{int(facts['memory']) / 2**30:.0f} GiB"
    for state in records.read(path.with_name("machine.jsonl"))[-1:]:
        facts["usable CPUs"] = str(state["usable_cpus"])
        facts["GPUs"] = ", ".join(gpu["name"] for gpu in state["gpus"])
    threads = {
        str(record["facts"]["torch_threads"]) for record in cells.newest if "torch_threads" in record.get("facts", {})
    }
    facts["torch threads"] = ", ".join(sorted(threads, key=natural_key))
    return Machine(described["machine"], {label: fact for label, fact in facts.items() if fact})
