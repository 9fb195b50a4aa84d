"""The guard: asv's code is replaced only where it is the code that the plugin knows."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import asv
import pytest

from ale_velocity.asv_plugin import defaults, direction, pages, points, preinstalled
from planted import NEW, OLD, RATE, Project, table


@pytest.fixture
def changed_asv(tmp_path):
    """Return a project, and a function that runs asv compare on it with a copy of asv in which some text changed."""
    project = Project(tmp_path / "project")
    project.add_benchmark(RATE, "env-steps/s", params=("only",))
    project.add_result(OLD, {RATE: [10000.0]})
    project.add_result(NEW, {RATE: [7000.0]})
    shutil.copytree(Path(asv.__file__).parent, tmp_path / "lib" / "asv")

    def run(name, old, new):
        path = tmp_path / "lib" / "asv" / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        search_path = f"{tmp_path / 'lib'}:{Path(points.__file__).parents[2]}"
        return project.asv("compare" if name.endswith(".py") else "publish", *_sides(name), PYTHONPATH=search_path)

    return run


def _sides(name):
    return (OLD, NEW) if name.endswith(".py") else ()


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (
            "commands/compare.py",
            "ratio_num = time_2 / time_1",
            "ratio_num = time_1 / time_2",
            "asv.commands.compare:Compare.print_table of asv 0.6.6 is not the code that the plugin was written for",
        ),
        ("commands/find.py", "    def run(\n", "    def search(\n", "asv.commands.find:Find.run of asv 0.6.6 is gone"),
        (
            "www/summarylist.js",
            "change > 5",
            "change > 3",
            "the page script summarylist.js of the installed asv is not",
        ),
    ],
)
def test_changed_code_of_asv_stops_the_command(changed_asv, name, old, new, message):
    """By name, with the version that is supported; nothing is printed that could be wrong."""
    done = changed_asv(name, old, new)
    assert done.returncode == 2
    assert message in done.stdout
    assert "asv==0.6.6" in done.stdout
    assert "Ratio" not in done.stdout


def test_the_plugin_steps_aside_for_a_direction_of_asvs_own(changed_asv):
    """If asv learns it (issue 1617), asv's table is printed."""
    done = changed_asv("commands/compare.py", "def mean(values):", "higher_is_better = {}\n\n\ndef mean(values):")
    assert done.returncode == 0
    assert "asv has a direction of its own (higher_is_better in asv.commands.compare)" in done.stdout
    assert table(done.stdout)[f"{RATE}('only')"][0] == "-"  # the wrong way round, as this asv does it


def test_every_point_is_the_code_of_this_asv():
    """The digests are of the pinned release; asv has no direction yet, and its scripts have each piece once."""
    for point in (*direction.REPLACED, *direction.RELIED_ON, *defaults.REPLACED, preinstalled.DISCOVER):
        point.check()
    for edit in pages.EDITS:
        edit.check()
    assert points.own_direction() is None


@pytest.mark.parametrize("name", ["asv.no_such_module:run", "asv.graph:NoClass.run", "asv.graph:Graph.no_method"])
def test_a_missing_point_is_refused(name, caplog):
    """Whatever part of its name is gone."""
    with pytest.raises(SystemExit) as stopped:
        points.Point(name, "0").check()
    assert stopped.value.code == 2
    assert f"{name} of asv" in caplog.text


def test_a_replaced_method_keeps_its_kind(monkeypatch):
    """A class method stays one, and the original can be called."""
    module = importlib.import_module("asv.machine")
    monkeypatch.setattr(module.Machine, "load", vars(module.Machine)["load"])
    points.Point("asv.machine:Machine.load", "").replace(lambda original: lambda cls: (cls, original))
    owner, original = module.Machine.load()
    assert owner is module.Machine
    assert callable(original)
