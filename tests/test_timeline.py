"""The manifest and the repository made from it."""

from __future__ import annotations

import subprocess

import pytest

from ale_velocity.cli import main
from ale_velocity.timeline import manifest, writer

GOOD = """
[series.ale-py]
package = "ale-py"
held = { torch = "2.13.0" }
releases = [
    { version = "0.11.2", date = 2025-07-12T22:18:41Z },
    { version = "0.12.0", date = 2026-05-30T22:37:06Z },
]
"""
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a manifest and returns its path."""

    def make(text=GOOD):
        path = tmp_path / "releases.toml"
        path.write_text(text)
        return path

    return make


def _git(path, *args):
    repository = writer.repository_path(path)
    return subprocess.run(["git", "-C", repository, *args], check=True, capture_output=True, text=True).stdout.strip()


def test_hashes_are_the_same_everywhere(root, tmp_path):
    """Results are filed under these hashes: a change here orphans all of them."""
    (tmp_path / "releases.toml").write_bytes((root / "releases.toml").read_bytes())
    commits = writer.build(tmp_path / "releases.toml")
    pinned = {
        "ale-py-0.9.0": "6683883eebc93c6e941c19ead88d60563d2b1370",
        "ale-py-0.11.2": "731f6c20f8e1842b0ecea5ab866c48f41687a2b2",
        "ale-py-0.12.1": "e7f87c82caf57c57366b40ec54938df6dae6ac6e",
        "torch-2.6.0": "0d7956574ba82fee6ccc0942a03227db82861d27",
        "torch-2.15.0": "0ee4d8a742c9a52df19f7ec6258d7911f1ed29ba",
        "ale-py-torch-2.11-0.11.0": "1a993cb777ceacf31311e4edac049ee13b108275",
        "ale-py-torch-2.11-0.12.1": "d29a8cd401aa6b9228446b7aa365748d5a65985b",
    }
    assert {name: commits[name] for name in pinned} == pinned


def test_a_commit_is_a_stack(write):
    """Tag, date, author and pins of one release; its branch ends in the newest one."""
    path = write()
    commits = writer.build(path)
    assert (
        _git(path, "log", "-1", "--format=%s|%at|%an", "ale-py-0.11.2")
        == "ale-py-0.11.2|1752358721|ale-velocity timeline"
    )
    assert 'dependencies = [\n    "ale-py==0.11.2",\n    "torch==2.13.0",\n]' in _git(
        path, "show", "ale-py-0.11.2:pyproject.toml"
    )
    assert _git(path, "rev-list", "ale-py").splitlines() == [commits["ale-py-0.12.0"], commits["ale-py-0.11.2"]]
    assert _git(path, "fsck", "--strict") == ""


def test_every_commit_has_its_own_version(root):
    """pip would not reinstall a project whose version did not change."""
    files = [
        writer.project_file(series, release)
        for series in manifest.load(root / "releases.toml")
        for release in series.releases
    ]
    versions = {line for text in files for line in text.splitlines() if line.startswith("version = ")}
    assert len(versions) == len(files)


def test_new_releases_append(write):
    """An appended release leaves the old commits as they are."""
    before = writer.build(write())
    appended = GOOD.rstrip().rstrip("]") + '    { version = "0.12.1", date = 2026-08-16T23:18:56Z },\n]\n'
    after = writer.build(write(appended))
    assert after.keys() - before.keys() == {"ale-py-0.12.1"}
    assert {name: after[name] for name in before} == before


def test_history_is_not_rewritten_unasked(write):
    """A changed release is refused with the way out; --rewrite replaces everything."""
    before = writer.build(write())
    changed = write(GOOD.replace("2.13.0", "2.12.1"))
    with pytest.raises(writer.TimelineError, match="Put the change into a new series"):
        writer.build(changed)
    assert writer.hashes(writer.repository_path(changed)) == before
    after = writer.build(changed, rewrite=True)
    assert all(after[name] != before[name] for name in before)


def test_a_note_is_not_part_of_the_commit(write):
    """Remarks for people may be mended later."""
    before = writer.build(write())
    after = writer.build(write(GOOD.replace("41Z }", '41Z, note = "different work" }')))
    assert after == before


def test_unreleased_and_local_stacks(write):
    """A git commit or a wheel takes the place of a version, for the moving and for a held package."""
    text = GOOD.replace(
        '{ version = "0.12.0",',
        f'{{ version = "0.13.0.dev1", requirement = "ale-py @ git+https://example.invalid/ale@{COMMIT}",',
    ).replace('torch = "2.13.0"', 'torch = "torch @ file:///wheels/torch-2.13.0-cp311-none-any.whl"')
    path = write(text)
    release = manifest.all_releases(manifest.load(path))["ale-py-0.13.0.dev1"]
    assert release.requirements == (
        f"ale-py @ git+https://example.invalid/ale@{COMMIT}",
        "torch @ file:///wheels/torch-2.13.0-cp311-none-any.whl",
    )
    assert release.name in writer.build(path)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"0.12.0"', '"0.11.2"', "series ale-py: release 2 (0.11.2): duplicate of release 1"),
        (
            "2026-05-30",
            "2024-05-30",
            "series ale-py: release 2 (0.12.0): is dated 2024-05-30 22:37:06+00:00, not after",
        ),
        ("date = 2026", "dat = 2026", "series ale-py: release 2 (0.12.0): unknown key 'dat'"),
        ("held =", "last_patch_only = 1\nheld =", "series ale-py: last_patch_only must be true or false"),
        ("held =", "hold =", "series ale-py: unknown key 'hold'"),
        ('"0.12.0"', '">=0.12"', "series ale-py: release 2 (>=0.12): '>=0.12' is not one exact version"),
        ('"2.13.0"', '"2.*"', "series ale-py: held torch: '2.*' is not one exact version"),
        ("22:37:06Z", "22:37:06", "release 2 (0.12.0): lacks a date with time and zone"),
        ("06Z }", '06Z, requirement = "ale-py>=1" }', "requirement 'ale-py>=1' does not pin one version"),
        ("06Z }", '06Z, requirement = "gym==1" }', "requirement 'gym==1' is not for ale-py"),
        (
            "06Z }",
            '06Z, requirement = "ale-py @ git+https://example.invalid/ale@main" }',
            "names no commit: end the URL in @ and 40 hex digits",
        ),
        ("06Z }", '06Z, python = "3" }', "python '3' is not a version specifier"),
        ("[series.ale-py]", "[serie.ale-py]", "unknown key 'serie' at the top"),
        ("held = {", "held = [", "is not TOML: "),
    ],
)
def test_a_bad_manifest_is_refused_where_it_is_bad(write, capsys, old, new, expected):
    """`timeline check` exits with 2 and names the file and the place."""
    path = write(GOOD.replace(old, new))
    assert main(["timeline", "check", "--manifest", str(path)]) == 2
    message = capsys.readouterr().err
    assert expected in message
    assert str(path) in message


def test_all_problems_are_reported_at_once(write):
    """Mending one problem at a time is slow."""
    bad = write(GOOD.replace("held =", "hold =") + "[other]\n")
    with pytest.raises(manifest.ManifestError) as caught:
        manifest.load(bad)
    assert len(caught.value.problems) == 3


def test_a_missing_manifest_is_named(tmp_path, capsys):
    """Run in the wrong folder, the command says which file it looked for."""
    assert main(["timeline", "check", "--manifest", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: cannot be read" in capsys.readouterr().err


def test_list_shows_every_commit(write, capsys):
    """Hash, date, name, stack and note."""
    path = write(GOOD.replace("41Z }", '41Z, note = "different work" }'))
    assert main(["timeline", "list", "--manifest", str(path)]) == 0
    commits = writer.hashes(writer.repository_path(path))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [
        *(commits["ale-py-0.11.2"][:8], "2025-07-12", "ale-py-0.11.2"),
        *("ale-py==0.11.2", "torch==2.13.0", "(different", "work)"),
    ]


def test_the_stack_of_a_release(write, capsys):
    """The requirements are what pip wants; an unknown name lists the nearest."""
    path = write()
    assert main(["timeline", "stack", "ale-py-0.12.0", "--manifest", str(path)]) == 0
    assert capsys.readouterr().out == "ale-py==0.12.0\ntorch==2.13.0\n"
    assert main(["timeline", "stack", "ale-py-0.12", "--manifest", str(path)]) == 2
    assert "did you mean ale-py-0.12.0" in capsys.readouterr().err


def test_the_real_manifest_holds_every_release_of_the_issue(root):
    """All series are whole: ale-py from 0.9.0 on, the last patch release of each torch minor from 2.6 on.

    The series for machines with torch 2.11 has what has the vector env.
    """
    series = {one.name: [release.version for release in one.releases] for one in manifest.load(root / "releases.toml")}
    # What `timeline refresh` appends comes after them.
    assert series["ale-py-torch-2.11"][:5] == series["ale-py"][5:10]
    assert series["ale-py"][:10] == [
        *("0.9.0", "0.9.1", "0.10.0", "0.10.1", "0.10.2"),
        *("0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.12.1"),
    ]
    assert series["torch"][:10] == [
        *("2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0"),
        *("2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"),
    ]
