"""A project whose changes are planted: real timeline, real asv commands, made-up values."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
import os
import subprocess
import sys
from pathlib import Path

from asv import util
from asv.results import Results
from asv.runner import BenchmarkResult

from ale_velocity.cell import append_record
from ale_velocity.timeline import manifest, writer

ROOT = Path(__file__).parent.parent
REPS = 5  # of the standard protocol
OLD, NEW = "ale-py-0.11.2", "ale-py-0.12.0"
RATE, CPU_RATE = "suite.Rates.track_env_steps", "suite.Rates.track_env_steps_cpu"
STEP_TIME = "suite.Times.track_step_time"
TIME, MEMORY = "suite.Own.time_loop", "suite.Own.peakmem_loop"
CELLS = ("gain", "loss", "small_gain", "small_loss", "same", "skipped", "failed", "newly_failed", "mended")
# What NEW is of OLD; for times and bytes the same changes, so that "gain" is worse there.
FACTORS = {"gain": 1.5, "loss": 0.7, "small_gain": 1.05, "small_loss": 0.95, "same": 1.0}
# One environment as ale-velocity's would be, without the minutes that a real one takes: nothing is installed.
ENVIRONMENT_PLUGIN = """
import os, sys
from asv import util
from ale_velocity.asv_plugin.environment import StackEnvironment

class Planted(StackEnvironment):
    tool_name = "planted"
    installed_commit_hash = None

    def create(self):
        pass

    def install_project(self, conf, repo, commit_hash):
        self._set_commit_hash(commit_hash)

    def run(self, args, **kwargs):
        env = {**kwargs.pop("env", os.environ), **self._global_env_vars}
        return util.check_output([sys.executable, *args], env=env, **kwargs)
"""
# Reads what each commit gives from planted.json: a rate, null for a failure, "n/a" for a skip.
SUITE = """
import json, os, random
from asv_runner.benchmarks.mark import SkipNotImplemented

def _planted():
    with open(os.environ["ASV_CONF_DIR"] + "/planted.json") as file:
        return json.load(file)[os.environ["ASV_COMMIT"]]

class Rates:
    params = (["a", "b"],)
    param_names = ("cell",)
    unit = "UNIT"
    version = "1"

    def setup(self, cell):
        if _planted()[cell] == "n/a":
            raise SkipNotImplemented("this release cannot do it")

    def track_env_steps(self, cell):
        process = random.gauss(1, 0.0002)
        return {"samples": [_planted()[cell] * process * random.gauss(1, 0.0002) for _ in range(5)], "number": 1}
"""


class Project:
    """A folder with the real configuration and manifest, in which commands run and results are planted."""

    def __init__(self, folder):
        self.folder = folder
        self.results = folder / "results"
        self.html = folder / "html"
        (folder / "home").mkdir(parents=True)
        (folder / "releases.toml").write_bytes((ROOT / "releases.toml").read_bytes())
        self.commits = writer.build(folder / "releases.toml")
        self.releases = manifest.all_releases(manifest.load(folder / "releases.toml"))
        self.conf = util.load_json(str(ROOT / "asv.conf.json"), js_comments=True)
        self.configure()
        self.add_machine("here")
        self.suite = {}

    def configure(self, **changes):
        """Write asv.conf.json with changes."""
        self.conf |= changes
        (self.folder / "asv.conf.json").write_text(json.dumps(self.conf))

    def without_plugin(self, **changes):
        """Configure stock asv over the same history."""
        stock = {"plugins": [], "dvcs": "git", "repo": ".asv/timeline.git", "environment_type": "virtualenv"}
        (self.folder / "asv.conf.json").write_text(json.dumps(self.conf | stock | changes))

    def forget_benchmark(self, name):
        """Describe a benchmark no more."""
        del self.suite[name]
        (self.results / "benchmarks.json").write_text(json.dumps({**self.suite, "version": 2}))

    def asv(self, *args, **environ):
        """Run an asv command there; stdout and stderr come in one text."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("ALE_VELOCITY_")}
        env |= {"HOME": str(self.folder / "home"), "PYTHONPATH": str(ROOT / "src")}
        env["ALE_VELOCITY_MACHINE"] = "here"
        return subprocess.run(
            [sys.executable, "-m", "asv", *args], cwd=self.folder, env=env | environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip

    def add_machine(self, name, **facts):
        """Describe a machine."""
        (self.results / name).mkdir(parents=True)
        machine = {"arch": "x86_64", "cpu": "A CPU", "num_cpu": "16", "os": "Linux", "ram": "64", **facts}
        (self.results / name / "machine.json").write_text(json.dumps({**machine, "machine": name, "version": 1}))

    def add_benchmark(self, name, unit, *, params=CELLS, kind="track", version="1"):
        """Describe a benchmark with one parameter, or without one."""
        self.suite[name] = {
            "name": name, "type": kind, "unit": unit, "version": version, "timeout": 60, "code": "",
            "params": [[repr(value) for value in params]] if params else [], "param_names": ["cell"] if params else [],
        }  # fmt: skip
        (self.results / "benchmarks.json").write_text(json.dumps({**self.suite, "version": 2}))

    def add_result(self, release, values, *, machine="here", version="1", facts=None, **variables):
        """Store results: for each benchmark a value a parameter, or all samples of it, None failed or NaN skipped."""
        facts = {"arch": "x86_64", "cpu": "A CPU", "num_cpu": "16", "os": "Linux", "ram": "64", **(facts or {})}
        variables = {"PROTOCOL": "standard", "DEVICE": "cpu", "GAME": "pong", "TORCH_THREADS": "default", **variables}
        variables = {f"ALE_VELOCITY_{name}": value for name, value in variables.items()}
        environment = "-".join(["stack-py3.11", *(name + value for name, value in sorted(variables.items()))])
        date = int(self.releases[release].date.timestamp() * 1000)
        params = {"machine": machine, "python": "3.11", **facts}
        results = Results(params, {}, self.commits[release], date, "3.11", environment, variables)
        results.load_data(str(self.results))
        for name, cells in values.items():
            samples = [cell if isinstance(cell, list) else None for cell in cells]
            numbers = [None if cell is None else 1 for cell in samples]
            plain = [math.nan if isinstance(cell, list) else cell for cell in cells]
            # asv computes the value of a cell with samples itself, unless it is missing.
            plain = [0.0 if sample else value for sample, value in zip(samples, plain, strict=True)]
            measured = BenchmarkResult(plain, samples, numbers, 0, "", None)
            at = dt.datetime(2026, 11, 1, 12, tzinfo=dt.timezone.utc)
            benchmark = {**self.suite[name], "version": version}
            results.add_result(benchmark, measured, started_at=at, duration=1.0, record_samples=True)
        results.save(str(self.results))
        return self.results / machine / results._filename.rpartition("/")[2]

    def add_record(self, result, cell, **values):
        """Record values as the cell of a stored result would; `cell` is asv's name for it."""
        stored = json.loads(result.read_text())
        record = {"commit": stored["commit_hash"], "environment": stored["env_name"], "benchmark": cell}
        append_record(result.with_name("cells.jsonl"), {**record, **values})

    def page(self, name):
        """Read a published JSON file."""
        return json.loads((self.html / name).read_text())

    def plant(self, values, unit="env-steps/s"):
        """Make `asv run` measure: `values` maps releases to what the suite's cells a and b give."""
        (self.folder / "planted_environment.py").write_text(ENVIRONMENT_PLUGIN)
        (self.folder / "benchmarks").mkdir(exist_ok=True)
        (self.folder / "benchmarks" / "__init__.py").touch()
        (self.folder / "benchmarks" / "suite.py").write_text(SUITE.replace("UNIT", unit))
        planted = {self.commits[release]: cells for release, cells in values.items()}
        (self.folder / "planted.json").write_text(json.dumps(planted))
        self.configure(plugins=[".planted_environment", *self.conf["plugins"]], environment_type="planted")


def windows(value, *, processes=1, spread=0.002):
    """Samples around a value: processes differ by about `spread`, their windows by a tenth of it."""
    bends = [math.sin(2.4 * number + 1) for number in range(processes * REPS)]
    return [
        float(f"{value * (1 + spread * bends[process]) * (1 + spread / 10 * bends[window]):.4g}")
        for process, window in itertools.product(range(processes), range(REPS))
    ]


def changed(value, cells=CELLS, **options):
    """Return the two sides of a benchmark in which every kind of change is planted."""
    after = {"skipped": math.nan, "failed": None, "newly_failed": None, "mended": windows(value, **options)}
    before = {"skipped": math.nan, "failed": None, "newly_failed": windows(value, **options), "mended": None}
    sides = []
    for fixed, factors in ((before, dict.fromkeys(FACTORS, 1.0)), (after, FACTORS)):
        sides.append([fixed[cell] if cell in fixed else windows(value * factors[cell], **options) for cell in cells])
    return sides


def table(output):
    """Return the rows of a printed table by benchmark, as (mark, before, after, ratio)."""
    rows = {}
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and not line.startswith("|-") and cells[0] != "Change":
            rows[cells[-1]] = tuple(cells[:4])
    return rows
