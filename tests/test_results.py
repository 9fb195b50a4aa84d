"""What is read from results files: nothing of a broken one, and no failure of what was never run."""

from __future__ import annotations

import json
import math
import sys

import pytest
from asv.results import Results
from asv.runner import BenchmarkResult

from ale_velocity.asv_plugin import results, stored
from planted import NEW, OLD, RATE, Project


@pytest.fixture
def project(tmp_path):
    """Return a project with one rate."""
    project = Project(tmp_path / "project")
    project.add_benchmark(RATE, "env-steps/s", params=("a",))
    return project


@pytest.mark.parametrize("content", [b"{", b"\xff"])
def test_compare_stops_at_a_broken_file(project, content):
    """With its name, whatever is wrong with it; it is left as it was."""
    project.add_result(OLD, {RATE: [100.0]})
    path = project.add_result(NEW, {RATE: [200.0]})
    path.write_bytes(content)
    done = project.asv("compare", OLD, NEW)
    assert done.returncode == 2
    assert f"{path.relative_to(project.folder)} cannot be read" in done.stdout
    assert path.read_bytes() == content


def test_publish_stops_at_a_broken_file(project):
    """Before it removes the old pages."""
    project.add_result(OLD, {RATE: [100.0]}).write_text("{")
    project.html.mkdir()
    done = project.asv("publish")
    assert done.returncode == 2
    assert "cannot be read" in done.stdout
    assert project.html.exists()


def test_run_stops_at_a_broken_file(project):
    """Before it measures and would write over it."""
    project.plant({NEW: {"a": 100, "b": 100}})
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    settings = "-".join(
        f"ALE_VELOCITY_{name}" for name in ("DEVICEcpu", "GAMEpong", "PROTOCOLstandard", "TORCH_THREADSdefault")
    )
    path = project.results / "here" / f"{project.commits[NEW][:8]}-planted-py{python}-{settings}.json"
    path.write_text("{")
    done = project.asv("run", f"{NEW}^!", ALE_VELOCITY_DEVICE="cpu")
    assert done.returncode == 2
    assert f"{path.relative_to(project.folder)} cannot be read" in done.stdout
    assert path.read_text() == "{"


def test_a_new_parameter_is_no_failure(project):
    """Neither to the sweep and the site before anything is run with it, nor in the file after another cell was."""
    project.plant({NEW: {"a": 100, "b": 100, "c": 100}})
    suite = project.folder / "benchmarks" / "suite.py"
    before = suite.read_text()
    assert before.count('["a", "b"]') == 1
    suite.write_text(before.replace('["a", "b"]', '["a"]'))
    assert project.asv("run", f"{NEW}^!", ALE_VELOCITY_DEVICE="cpu").returncode == 0
    suite.write_text(before.replace('["a", "b"]', '["a", "b", "c"]'))
    assert project.asv("run", "--bench", "just-discover", ALE_VELOCITY_DEVICE="cpu").returncode == 0
    points = stored.read_config(project.folder / "asv.conf.json").points
    assert [(point.line.params, point.status) for point in points] == [((("cell", "a"),), "measured")]
    done = project.asv("run", f"{NEW}^!", "--bench", r"track_env_steps\('b'\)", ALE_VELOCITY_DEVICE="cpu")
    assert done.returncode == 0, done.stdout
    (path,) = (project.results / "here").glob("*-planted-*.json")
    ((values, *_),) = json.loads(path.read_text())["results"].values()
    assert [value is None or math.isnan(value) for value in values] == [False, False, True]
    assert math.isnan(values[2])


def test_a_failure_stays_one():
    """None where the result has the combination, also where everything failed."""
    failed = Results({"machine": "here"}, {}, "0" * 40, 0, "3.11", "here", {})
    measured = BenchmarkResult([None], [None], [None], 1, "", None)
    benchmark = {"name": RATE, "version": "1", "params": [["'a'"]]}
    failed.add_result(benchmark, measured, record_samples=True)
    one, other = results.values_of(failed, RATE, [["'a'", "'b'"]])
    assert one is None
    assert math.isnan(other)
