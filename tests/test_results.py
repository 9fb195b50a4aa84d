"""Results files that cannot be read, through the commands that would go on without them."""

from __future__ import annotations

import sys

import pytest

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
