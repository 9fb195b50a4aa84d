"""Which wheel answers a need, and what is needed in turn."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from ale_velocity import wheels
from ale_velocity.errors import VelocityError
from ale_velocity.wheels import Need, Package
from fake_wheels import write_wheel

TARGET = wheels.linux("3.12", wheels.expanded("manylinux_2_28_x86_64"))


def _unmet(roots, index, markers=TARGET.markers):
    """Return the unmet needs as text, and what was looked for, with an index of (name, version) to requirements."""
    asked = []

    def find(need):
        asked.append(str(need))
        suits = [version for name, version in index if name == need.name and need.specifier.contains(version)]
        return Package(max(suits), tuple(index[need.name, max(suits)])) if suits else None

    missing = wheels.unmet([(text, "you") for text in roots], find, markers)
    return [str(need) for need in missing], asked


def test_a_manylinux_machine_takes_older_wheels():
    """pip does not derive this for a machine that it does not run on."""
    names = wheels.expanded("manylinux_2_28_x86_64")
    assert names[:2] == ["manylinux_2_28_x86_64", "manylinux_2_27_x86_64"]
    assert {"manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux1_x86_64"} < set(names)
    assert wheels.expanded("linux_aarch64") == ["linux_aarch64"]
    with pytest.raises(VelocityError, match="'macosx_11_0_arm64' is none of Linux: name one such as manylinux_2_28"):
        wheels.expanded("macosx_11_0_arm64")


@pytest.mark.parametrize(
    ("tag", "fits"),
    [
        ("cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64", True),
        ("cp36-abi3-manylinux2014_x86_64", True),
        ("py2.py3-none-any", True),
        ("cp311-cp311-manylinux_2_17_x86_64", False),
        ("cp312-cp312-manylinux_2_34_x86_64", False),
        ("cp312-cp312-manylinux_2_17_aarch64", False),
    ],
)
def test_a_wheel_fits_python_and_platform(tmp_path, tag, fits):
    """Of the machine that it is for, not of this one."""
    path = write_wheel(tmp_path, "emulator", "1.0", tag=tag)
    assert wheels.best([tmp_path], Need("emulator"), TARGET) == (path if fits else None)


def test_the_newest_answer_is_the_best(tmp_path):
    """By version, not by text; other packages and files are passed over."""
    (tmp_path / "emulator.whl").touch()
    for version in ("0.9", "0.10", "0.11"):
        write_wheel(tmp_path, "emulator", version)
    write_wheel(tmp_path, "emulator-tools", "0.10.5")
    best = wheels.best([tmp_path], Need("emulator", SpecifierSet("<0.11")), TARGET)
    assert best.name == "emulator-0.10-py3-none-any.whl"
    assert wheels.best([tmp_path], Need("emulator", SpecifierSet(">1")), TARGET) is None


def test_a_wheel_says_what_it_needs(tmp_path):
    """And a damaged one is refused by name."""
    path = write_wheel(tmp_path, "emulator", "1.0", ["numpy>1.20", 'tomli; python_version < "3.11"'])
    assert wheels.read(path) == Package("1.0", ("numpy>1.20", 'tomli; python_version < "3.11"'))
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(VelocityError, match="emulator-1.0-py3-none-any.whl: is not a whole wheel .*: delete it"):
        wheels.read(path)


def test_needs_are_followed_by_the_markers_of_the_target():
    """Whatever Python the command itself runs on; extras are followed where they are asked for."""
    index = {
        ("emulator", "1"): ["numpy", 'old; python_version < "3.12"', 'video; extra == "video"'],
        ("numpy", "2"): [],
        ("video", "3"): ["gone>=4"],
    }
    assert _unmet(["emulator"], index)[0] == []
    assert _unmet(["emulator[video]"], index)[0] == ["gone>=4 (for video 3)"]
    older = wheels.linux("3.11", ["manylinux_2_17_x86_64"]).markers
    assert _unmet(["emulator"], index, older)[0] == ["old (for emulator 1)"]


def test_all_needs_known_so_far_count():
    """A package is looked for once with all that the roots ask, and again only if a later need asks for another."""
    index = {("tools", "81"): [], ("tools", "84"): [], ("torch", "2"): ["tools<82"]}
    assert _unmet(["tools>=77", "tools<82"], index) == ([], ["tools<82,>=77 (for you)"])
    missing, asked = _unmet(["tools>=77", "torch"], index)
    assert missing == []
    assert asked == ["tools>=77 (for you)", "torch (for you)", "tools<82,>=77 (for you, torch 2)"]


def test_a_contradiction_names_who_asks():
    """No version is both."""
    index = {("numpy", "2.2.6"): [], ("emulator", "1"): ["numpy<2"]}
    assert _unmet(["numpy==2.2.6", "emulator"], index)[0] == ["numpy<2,==2.2.6 (for you, emulator 1)"]
