"""The table of units, and what is written with it."""

from __future__ import annotations

import math

import pytest
from asv import util

from ale_velocity.asv_plugin import units
from planted import NEW, RATE, Project

human = units.with_unit(util.human_value)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12345.678, "env-steps/s", "12350 env-steps/s"),
        (10000.0, "env-steps/s", "10000 env-steps/s"),
        (1234567.0, "env-steps/CPU-s", "1235000 env-steps/CPU-s"),
        (0.000123456, "microseconds/step", "0.0001235 microseconds/step"),
        (3, "microseconds/step", "3 microseconds/step"),
        (0.00123, "seconds", "1.23ms"),
        (2000, "bytes", "2k"),
        (math.nan, "env-steps/s", "n/a"),
        (None, "env-steps/s", "failed"),
        (1.5, None, "1.5"),
    ],
)
def test_values_have_four_digits_and_a_unit(value, unit, text):
    """asv's own scaling of seconds and bytes is kept."""
    assert human(value, unit) == text


@pytest.mark.parametrize(
    ("before", "after", "unit", "expected"),
    [
        (100, 90, "env-steps/s", True),
        (100, 110, "env-steps/s", False),
        (100, 90, "seconds", False),
        (100, 110, "seconds", True),
        (100, 100, "env-steps/s", False),
    ],
)
def test_a_loss_depends_on_the_unit(before, after, unit, expected):
    """Less of a rate, more of a time."""
    assert units.is_loss(before, after, unit) is expected


def test_the_factor_cuts_both_ways_alike():
    """With 1.1 a rate must fall below 1/1.1 to be a loss, as a time must rise above 1.1."""
    assert not units.is_loss(100, 92, "env-steps/s", 1.1)
    assert units.is_loss(100, 90, "env-steps/s", 1.1)
    assert not units.is_loss(100, 109, "seconds", 1.1)
    assert units.is_loss(100, 111, "seconds", 1.1)


@pytest.mark.parametrize("command", [("check",), ("run", f"{NEW}^!")])
def test_an_unknown_unit_stops_check_and_run(tmp_path, command):
    """With the names of the benchmark and the unit, and where the table is; nothing is stored."""
    project = Project(tmp_path / "project")
    project.plant({NEW: {"a": 1, "b": 1}}, unit="furlongs")
    done = project.asv(*command)
    assert done.returncode == 2
    assert f"benchmark {RATE} has the unit 'furlongs'" in done.stdout
    assert "HIGHER_IS_BETTER in " in done.stdout
    assert "units.py" in done.stdout
    assert not list(project.results.glob("here/*-*.json"))


@pytest.mark.parametrize("command", [("compare", NEW, NEW), ("publish",)])
def test_an_unknown_unit_stops_compare_and_publish(tmp_path, command):
    """Also where results are already stored; the old pages stay."""
    project = Project(tmp_path / "project")
    project.add_benchmark(RATE, "unit")  # what asv writes for a track_ benchmark without a unit
    project.html.mkdir()
    done = project.asv(*command)
    assert done.returncode == 2
    assert f"benchmark {RATE} has the unit 'unit'" in done.stdout
    assert project.html.exists()
