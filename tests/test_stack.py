"""Pins against what is installed, with packages that the tests make up."""

from __future__ import annotations

import json

import pytest

from ale_velocity import stack

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def install(monkeypatch, tmp_path):
    """Return a function that makes a distribution importable, with its requirements and PEP 610 record."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(name, version, requires=(), direct_url=None):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        (folder / "METADATA").write_text("\n".join(lines + [f"Requires-Dist: {pin}" for pin in requires]) + "\n")
        if direct_url:
            (folder / "direct_url.json").write_text(json.dumps(direct_url))

    return make


def test_matching_pins_pass(install):
    """A pin without a build tag admits any build of that version."""
    install("ale-timeline", "1", ["emulator-x==0.11.2", "learner-x==2.13.0"])
    install("emulator-x", "0.11.2")
    install("learner-x", "2.13.0+cpu")
    stack.check_pins()


def test_a_mismatch_names_both_versions(install):
    """Asked for one, have the other: no number."""
    install("ale-timeline", "1", ["emulator-x==0.11.2", "learner-x==2.13.0"])
    install("emulator-x", "0.11.0")
    install("learner-x", "2.13.0")
    with pytest.raises(stack.StackMismatchError, match=r"pins emulator-x==0.11.2, installed is emulator-x 0.11.0$"):
        stack.check_pins()


def test_a_missing_package_is_a_mismatch(install):
    """Every pinned package must be there."""
    install("ale-timeline", "1", ["emulator-y==0.11.2"])
    with pytest.raises(stack.StackMismatchError, match="emulator-y is not installed"):
        stack.check_pins()


def test_a_git_pin_is_held_against_its_commit(install):
    """An unreleased package is known by the URL and the commit that it was installed from."""
    install("ale-timeline", "1", [f"emulator-x @ git+https://example.invalid/x@{COMMIT}"])
    record = {"url": "https://example.invalid/x", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}
    install("emulator-x", "0.13.0.dev0", direct_url=record)
    stack.check_pins()


def test_an_index_release_is_not_a_git_pin(install):
    """A release of the same name does not stand in for a commit."""
    install("ale-timeline", "1", [f"emulator-x @ git+https://example.invalid/x@{COMMIT}"])
    install("emulator-x", "0.13.0")
    with pytest.raises(stack.StackMismatchError, match="installed is release 0.13.0 of an index"):
        stack.check_pins()


def test_a_local_wheel_is_known_by_its_url(install):
    """The wheel that the commit names is the wheel that was installed."""
    install("ale-timeline", "1", ["emulator-x @ file:///wheels/emulator_x-1-py3-none-any.whl"])
    install("emulator-x", "1", direct_url={"url": "file:///wheels/emulator_x-1-py3-none-any.whl", "archive_info": {}})
    stack.check_pins()


def test_no_timeline_at_all_says_how_to_run():
    """Outside asv there is no commit to compare with."""
    with pytest.raises(stack.StackMismatchError, match="'asv run'"):
        stack.check_pins()


def test_versions_keep_the_build_tag(install):
    """Reports say which build was measured, and leave out what is not there."""
    install("learner-x", "2.13.0+cu130")
    assert stack.versions("learner-x", "emulator-none") == {"learner-x": "2.13.0+cu130"}
