"""`asv find`: the release of the loss, without --invert."""

from __future__ import annotations

import json

import pytest
from asv import util

from planted import RATE, Project

RELEASES = tuple(f"ale-py-{version}" for version in ("0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.12.1"))
# The first release cannot be measured.
FALLING = dict(zip(RELEASES, ("n/a", 10000, 10000, 6000, 6000), strict=True))
RISING = dict(zip(RELEASES, ("n/a", 6000, 6000, 10000, 10000), strict=True))


@pytest.mark.parametrize(
    ("unit", "values", "options", "kind"),
    [
        ("env-steps/s", FALLING, [], "regression"),
        ("env-steps/s", RISING, ["--invert"], "improvement"),
        ("microseconds/step", RISING, [], "regression"),
    ],
)
def test_find_searches_for_what_is_worse_in_the_unit(tmp_path, unit, values, options, kind):
    """A skipped release is passed over; the values that are stored are the measured ones."""
    project = Project(tmp_path / "project")
    project.plant({release: {"a": value, "b": 1} for release, value in values.items()}, unit=unit)
    done = project.asv("find", f"ale-py-0.10.2..{RELEASES[-1]}", "track_env_steps.*'a'", *options)
    assert done.returncode == 0, done.stdout
    assert f"Greatest {kind} found: 57e592d2 <ale-py-0.12.0>" in done.stdout
    paths = project.results.glob("here/*-planted-*.json")
    stored = [(json.loads(path.read_text())["results"][RATE][0] or [None])[0] for path in paths]
    measured = [value for value in stored if not util.is_na(value)]
    assert measured
    assert min(measured) > 5000


def test_releases_of_different_work_are_named(tmp_path):
    """What a search calls a loss may be the work's: fingerprints beside the results tell, whatever cell has them."""
    project = Project(tmp_path / "project")
    project.plant({release: {"a": FALLING[release], "b": 1} for release in RELEASES})
    arguments = ("find", f"ale-py-0.10.2..{RELEASES[-1]}", "track_env_steps.*'a'")
    assert "different work" not in project.asv(*arguments).stdout
    old, new = (project.commits[release][:8] for release in ("ale-py-0.11.0", "ale-py-0.12.1"))
    for result in project.results.glob("here/*-planted-*.json"):
        project.add_record(result, f"{RATE}-1", behaviour="1-new" if result.name.startswith(new) else "1-old")
    done = project.asv(*arguments)
    assert f"{new} does different work than {old}, a step between them is no loss" in done.stdout, done.stdout
    assert done.stdout.count("different work") == 1
