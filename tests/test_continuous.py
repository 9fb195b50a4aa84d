"""`asv continuous` and rounds: measured through asv's runner, in an environment in which nothing is installed."""

from __future__ import annotations

import json
import statistics

import pytest

from planted import NEW, OLD, RATE, REPS, Project, table

CELL = f"{RATE}('a')"


@pytest.fixture
def project(tmp_path):
    """Return a project without results."""
    return Project(tmp_path / "project")


def samples(project, release):
    """Return the stored value and samples of cell a of a release."""
    (path,) = project.results.glob(f"here/{project.commits[release][:8]}-planted-*.json")
    stored = json.loads(path.read_text())
    row = dict(zip(stored["result_columns"], stored["results"][RATE], strict=False))
    return row["result"][0], row["samples"][0]


def test_a_loss_exits_1_and_rounds_add_processes(project):
    """-30%; asv's docs call the exit status 1 a loss. Two rounds are two processes, and another run adds to them."""
    project.plant({OLD: {"a": 10000, "b": 1}, NEW: {"a": 7000, "b": 1}})
    done = project.asv("continuous", OLD, NEW, "-b", "'a'", "-a", "rounds=2")
    assert done.returncode == 1, done.stdout
    assert "PERFORMANCE DECREASED." in done.stdout
    assert table(done.stdout)[CELL][0] == "+"
    assert len(samples(project, NEW)[1]) == 2 * REPS
    project.asv("run", f"{NEW}^!", "-b", "'a'", "--append-samples")
    value, windows = samples(project, NEW)
    assert len(windows) == 3 * REPS
    assert value == statistics.median(windows)
    assert project.asv("publish").returncode == 0
    (path,) = (path for path in project.html.glob(f"graphs/**/{RATE}.json") if "summary" not in path.parts)
    assert json.loads(path.read_text())[-1][1][0] == value


@pytest.mark.parametrize(
    ("after", "words", "mark"),
    [(15000, "PERFORMANCE INCREASED.", "-"), (10000, "BENCHMARKS NOT SIGNIFICANTLY CHANGED.", None)],
)
def test_a_gain_and_no_change_exit_0(project, after, words, mark):
    """+50%, and the same code twice."""
    project.plant({OLD: {"a": 10000, "b": 1}, NEW: {"a": after, "b": 1}})
    done = project.asv("continuous", OLD, NEW, "-b", "'a'")
    assert done.returncode == 0, done.stdout
    assert words in done.stdout
    assert table(done.stdout).get(CELL, [None])[0] == mark


@pytest.mark.parametrize(("places", "status", "marks"), [([0, 1], 2, {"#"}), ([0], 1, {"#", "+"})])
def test_different_work_is_no_loss(project, places, status, marks):
    """Alone there is nothing to compare; beside a true loss, the loss decides."""
    project.plant({OLD: {"a": 10000, "b": 10000}, NEW: {"a": 7000, "b": 7000}})
    project.asv("run", f"--no-walk {OLD} {NEW}")
    for release, behaviour in ((OLD, "1-aaaa"), (NEW, "1-bbbb")):
        (path,) = project.results.glob(f"here/{project.commits[release][:8]}-planted-*.json")
        for place in places:
            project.add_record(path, f"{RATE}-{place}", behaviour=behaviour)
    done = project.asv("continuous", OLD, NEW)
    assert done.returncode == status, done.stdout
    assert {row[0] for row in table(done.stdout).values()} == marks
    assert f"different work: {len(places)} of 2: " in done.stdout


def test_a_rise_of_a_time_exits_1(project):
    """The same values in another unit."""
    project.plant({OLD: {"a": 100, "b": 1}, NEW: {"a": 150, "b": 1}}, unit="microseconds/step")
    assert project.asv("continuous", OLD, NEW, "-b", "'a'").returncode == 1


def test_nothing_measured_is_not_slower(project):
    """All skipped: another exit status than a loss's."""
    project.plant({OLD: {"a": "n/a", "b": 1}, NEW: {"a": 1, "b": 1}})
    done = project.asv("continuous", OLD, NEW, "-b", "'a'")
    assert done.returncode == 2
    assert "nothing to compare" in done.stdout


def test_stock_asv_fails_on_a_gain(project):
    """The reason for all this."""
    project.plant({OLD: {"a": 10000, "b": 1}, NEW: {"a": 15000, "b": 1}})
    project.without_plugin(plugins=[".planted_environment"], environment_type="planted")
    project.asv("machine", "--yes", "--machine", "here")
    done = project.asv("continuous", OLD, NEW, "-b", "'a'", "--machine", "here")
    assert done.returncode == 1
    assert "PERFORMANCE DECREASED." in done.stdout
