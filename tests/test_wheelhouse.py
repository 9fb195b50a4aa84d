"""The command that gathers wheels, with an index of made-up ones in pip's place."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from packaging.version import Version

from ale_velocity import wheelhouse
from ale_velocity.cli import main
from ale_velocity.errors import VelocityError
from ale_velocity.wheels import Need
from fake_wheels import write_wheel

MANIFEST = """
[series.emulator]
package = "ale-py"
held = { torch = "2.11.0", numpy = "2.5.2" }
releases = [
    { version = "0.11.2", date = 2025-07-12T22:18:41Z, python = ">=3.10,<3.14" },
    { version = "0.12.0", date = 2026-05-30T22:37:06Z },
]
[series.learner]
package = "torch"
held = { ale-py = "0.12.0" }
releases = [{ version = "2.11.0", date = 2026-03-23T18:07:18Z }]
"""
PROJECT = """
[build-system]
requires = ["setuptools>=77"]
[project]
name = "us"
dependencies = ["asv==0.6.6", "numpy>=1.26"]
"""
INDEX = {
    ("ale-py", "0.11.2"): ["numpy>1.20"],
    ("ale-py", "0.12.0"): ["numpy>1.20", "roms"],
    ("asv", "0.6.6"): ["asv_runner", 'tomli; python_version < "3.11"'],
    ("asv-runner", "0.3.2"): [],
    ("build", "1"): ["hooks"],
    ("hooks", "1"): [],
    ("numpy", "2.5.2"): [],
    ("numpy", "2.6.0"): [],
    ("pip", "26"): [],
    ("pympler", "1"): [],
    ("roms", "1"): [],
    ("setuptools", "81"): [],
    ("setuptools", "84"): [],
    ("tomli", "2"): [],
    ("wheel", "1"): [],
}
TOOLS = ("asv-0.6.6", "asv_runner-0.3.2", "build-1", "hooks-1", "pip-26", "pympler-1", "setuptools-81", "wheel-1")


class FakePip:
    """pip with an index of made-up wheels; `log` gets the needs, and one in `broken` is raised half way."""

    index: dict
    log: list
    broken: dict

    def __init__(self, python, platforms):
        self.python, self.platforms = python, platforms

    def download(self, need, folder):
        self.log.append(need.name)
        if need.name in self.broken:
            (folder / f"{need.name}-1-py3-none-any.whl").write_bytes(b"half")
            raise self.broken[need.name]
        suits = [version for name, version in self.index if name == need.name and need.specifier.contains(version)]
        if not suits:
            raise wheelhouse.NoSuchWheelError(f"no wheel for {need}")
        version = max(suits, key=Version)
        write_wheel(folder, need.name, version, self.index[need.name, version])


@pytest.fixture
def pip(monkeypatch):
    """Return the class of the fake pip, which stands in for the real one."""
    monkeypatch.setattr(FakePip, "index", dict(INDEX), raising=False)
    monkeypatch.setattr(FakePip, "log", [], raising=False)
    monkeypatch.setattr(FakePip, "broken", {}, raising=False)
    monkeypatch.setattr(wheelhouse, "Pip", FakePip)
    return FakePip


@pytest.fixture
def house(tmp_path, pip):
    """Return a function that runs the command on a small checkout, and has the folder of wheels as `folder`."""
    (tmp_path / "releases.toml").write_text(MANIFEST)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    folder = tmp_path / "wheels"

    def run(*options, series="emulator", python="3.12"):
        manifest = str(tmp_path / "releases.toml")
        command = ["wheelhouse", "--series", series, "--python", python, "-d", str(folder), "--manifest", manifest]
        return main([*command, *options])

    run.folder = folder
    run.names = lambda: sorted(path.name.removesuffix("-py3-none-any.whl") for path in folder.glob("*.whl"))
    return run


def test_what_such_a_machine_needs(house, pip, capsys):
    """Each in one version but the package that moves; no torch, and a setuptools that torch 2.11 takes."""
    assert house() == 0
    assert house.names() == sorted(["ale_py-0.11.2", "ale_py-0.12.0", "numpy-2.5.2", "roms-1", *TOOLS])
    output = capsys.readouterr().out
    assert "fetching setuptools<82,>=77 (for asv's environments, torch)" in output
    assert "complete for emulator 0.11.2, 0.12.0 on Python 3.12" in output
    assert "12 wheels" in output


def test_nothing_is_fetched_twice(house, pip):
    """A second run asks pip for nothing, and a run after a loss for what was lost."""
    assert house() == 0
    assert sorted(pip.log) == sorted([*{*pip.log}, "ale-py"])  # once each, the package that moves twice
    pip.log.clear()
    assert house() == 0
    assert pip.log == []
    (house.folder / "hooks-1-py3-none-any.whl").unlink()
    assert house() == 0
    assert pip.log == ["hooks"]


def test_some_releases_and_more_packages(house):
    """What the machine has beside torch is left out, with what it needs."""
    assert house("--releases", "0.11.2", "--preinstalled", "NumPy", "asv", "--also", "hooks") == 0
    assert house.names() == sorted(["ale_py-0.11.2", *TOOLS[1:]])


def test_releases_without_wheels_for_the_python_are_left_out(house, capsys):
    """By themselves; asked for by name they are an error."""
    assert house(python="3.14") == 0
    assert "ale_py-0.12.0" in house.names()
    assert "ale_py-0.11.2" not in house.names()
    assert "left out: emulator-0.11.2, which needs Python >=3.10,<3.14" in capsys.readouterr().out
    assert house("--releases", "emulator-0.11.2", python="3.14") == 2
    assert "emulator-0.11.2 needs Python >=3.10,<3.14, not 3.14" in capsys.readouterr().err


def test_markers_are_those_of_the_other_python(house):
    """asv needs tomli on Python 3.10 only."""
    assert house("--releases", "0.12.0", python="3.10") == 0
    assert "tomli-2" in house.names()


@pytest.mark.parametrize(
    ("options", "series", "message"),
    [
        ([], "other", "has no series 'other': it has emulator, learner"),
        ([], "learner", "series learner moves torch, and a machine with its own torch has one: use emulator"),
        (["--releases", "0.13"], "emulator", "series emulator has no release '0.13': it has 0.11.2, 0.12.0"),
        (["--platform", "win_amd64"], "emulator", "platform 'win_amd64' is none of Linux"),
    ],
)
def test_wrong_options_are_errors(house, capsys, options, series, message):
    """One message, exit code 2, and no folder."""
    assert house(*options, series=series) == 2
    assert message in capsys.readouterr().err
    assert not house.folder.exists()


@pytest.mark.parametrize("options", [["--python", "4"], ["--also", "a b"]])
def test_values_that_are_none(house, options):
    """argparse names the option."""
    with pytest.raises(SystemExit, match="2"):
        house(*options)


def test_a_release_at_a_url_cannot_be_gathered(house, tmp_path, capsys):
    """The machine could not open the URL."""
    url = 'version = "0.12.0", requirement = "ale-py @ https://example.invalid/ale_py-0.12.0-py3-none-any.whl"'
    (tmp_path / "releases.toml").write_text(MANIFEST.replace('version = "0.12.0"', url, 1))
    assert house() == 2
    assert "emulator-0.12.0 asks for ale-py @ https://example.invalid" in capsys.readouterr().err
    assert house("--releases", "0.11.2") == 0


def test_away_from_a_checkout(house, tmp_path, capsys):
    """What ale-velocity needs stands in its pyproject.toml."""
    (tmp_path / "pyproject.toml").unlink()
    assert house() == 2
    assert "pyproject.toml: No such file or directory: it says what ale-velocity needs" in capsys.readouterr().err


def test_check_names_every_missing_and_damaged_wheel(house, pip, capsys):
    """Also those that only a missing wheel asks for; nothing is fetched."""
    assert house() == 0
    pip.log.clear()
    for name in ("build-1", "hooks-1"):
        (house.folder / f"{name}-py3-none-any.whl").unlink()
    numpy = house.folder / "numpy-2.5.2-py3-none-any.whl"
    numpy.write_bytes(numpy.read_bytes()[:-3])
    assert house("--check") == 2
    message = capsys.readouterr().err
    assert message.splitlines()[1:] == [
        "  build-1-py3-none-any.whl is missing",
        "  hooks-1-py3-none-any.whl is missing",
        "  numpy-2.5.2-py3-none-any.whl is damaged: delete it",
        "to fetch what is missing, leave out --check",
    ]
    assert pip.log == []


def test_check_of_a_folder_without_checksums(house, capsys):
    """A folder that was filled by hand, or not to the end."""
    assert house() == 0
    (house.folder / "SHA256SUMS").unlink()
    (house.folder / "asv-0.6.6-py3-none-any.whl").unlink()
    (house.folder / "roms-1-py3-none-any.whl").write_bytes(b"half")
    assert house("--check") == 2
    message = capsys.readouterr().err
    assert "no wheel for asv==0.6.6 (for us)" in message
    assert "roms-1-py3-none-any.whl is damaged: delete it" in message


@pytest.mark.parametrize("error", [VelocityError("the disk is full"), KeyboardInterrupt()])
def test_a_stop_leaves_whole_wheels_only(house, pip, error):
    """What was fetched stays, and the next run goes on from there."""
    pip.broken["build"] = error
    assert house() == (2 if isinstance(error, VelocityError) else 130)
    assert house.names() == ["ale_py-0.11.2", "asv-0.6.6", "asv_runner-0.3.2", "numpy-2.5.2"]
    assert {path.suffix for path in house.folder.iterdir()} == {".whl"}
    pip.broken.clear()
    pip.log.clear()
    (house.folder / ".fetching").mkdir()  # as a killed run leaves it
    (house.folder / ".fetching" / "build-1-py3-none-any.whl").write_bytes(b"half")
    assert house() == 0
    assert "numpy" not in pip.log
    assert not (house.folder / ".fetching").exists()


def test_a_release_that_contradicts_its_series_is_named(house, pip, capsys):
    """The others are fetched nevertheless."""
    pip.index["ale-py", "0.11.2"] = ["numpy<2"]
    assert house() == 2
    message = capsys.readouterr().err
    assert "no wheel for numpy<2,==2.5.2,>=1.26 (for emulator-0.11.2, us, ale-py 0.11.2)" in message
    assert "--releases leaves out a release" in message
    assert "ale_py-0.12.0" in house.names()
    assert house("--releases", "0.12.0") == 0


@pytest.mark.parametrize(
    ("stderr", "kind", "message"),
    [
        ("OSError: [Errno 28] No space left on device", VelocityError, "wheels: the disk is full: free some space"),
        ("ERROR: No match for numpy (from versions: none)", VelocityError, "no wheel for numpy .* pip says:\nERROR"),
        ("ERROR: No match (from versions: 1, 2)", wheelhouse.NoSuchWheelError, "on Python 3.12; pip says:\nERROR"),
    ],
)
def test_why_pip_fails(monkeypatch, tmp_path, stderr, kind, message):
    """A full disk is told from a missing wheel, and a missing wheel from a missing package or network."""
    done = subprocess.CompletedProcess([], 1, "", stderr)
    monkeypatch.setattr(wheelhouse.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(VelocityError, match=message) as caught:
        wheelhouse.Pip("3.12", ()).download(Need("numpy"), tmp_path / "wheels" / ".fetching")
    assert type(caught.value) is kind


def test_pip_takes_wheels_from_a_folder(monkeypatch, tmp_path):
    """The real pip, for another Python and platform than its own, without an index."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    for tag in ("cp312-cp312-manylinux_2_17_x86_64", "cp311-cp311-manylinux_2_17_x86_64"):
        write_wheel(tmp_path / "there", "emulator", "1.0", ["never-looked-for"], tag)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "there"))
    wheelhouse.Pip("3.12", ("manylinux_2_17_x86_64",)).download(Need("emulator"), tmp_path / "here")
    assert [path.name for path in Path(tmp_path / "here").glob("*.whl")] == [
        "emulator-1.0-cp312-cp312-manylinux_2_17_x86_64.whl"
    ]
