"""Environments over the torch that is there: what they see, and what they refuse."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from asv import util
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.environment import get_environments
from asv.repo import get_repo

from ale_velocity import installed, layer
from ale_velocity.asv_plugin import preinstalled
from ale_velocity.asv_plugin.environment import StackEnvironment
from ale_velocity.installed import Torch
from fake_wheels import install, write_wheel

SERIES = "ale-py-torch-2.11"
ASV_INSTALLS = (("asv_runner", "0.3.2"), ("build", "1.6"), ("pympler", "1.1"), ("wheel", "0.48"))
STACK = (("numpy", "2.5.2"), ("gymnasium", "1.4.0"), ("ale-py", "0.12.1"))


@pytest.fixture
def torch(tmp_path, monkeypatch):
    """Return the folder of a made-up torch 2.11.0+cu130, on this process's search path only, and not imported."""
    folder = tmp_path / "target"
    install(folder, "torch", "2.11.0+cu130", ["setuptools<82", "sympy-x"], 'raise RuntimeError("imported")\n')
    install(folder, "numpy", "2.5.2")
    install(tmp_path / "other", "setuptools", "81.0")  # beside it, but an environment has its own
    install(tmp_path / "other", "sympy-x", "1")
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path / "other")
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture
def conf(root, tmp_path, monkeypatch):
    """Return the real configuration, in a folder that has nothing else but the manifest."""
    for name in ("asv.conf.json", "releases.toml"):
        shutil.copy(root / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return Config.load("asv.conf.json")


@pytest.fixture
def environment(conf, tmp_path, monkeypatch):
    """Return the environment, whose set-up only makes its folder, with the setuptools that asv would choose."""
    (made,) = get_environments(conf, ["preinstalled"])
    packages = layer.site_packages(Path(made._path))

    def create(self):
        if not packages.exists():
            install(packages, "setuptools", "84.0")

    monkeypatch.setattr(StackEnvironment, "create", create)
    return made


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """Return the folder that pip is told to take everything from, with the stack of one release in it."""
    folder = tmp_path / "some wheels"
    folder.mkdir()
    for name, version in (*STACK, *ASV_INSTALLS):
        write_wheel(folder, name, version)
    write_wheel(folder, "setuptools", "81.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", folder.as_uri())
    return folder


def _check(environment, conf, *names):
    """Check releases as the first thing that measuring commands do; return the exit code of a refusal, None if none."""
    repo = get_repo(conf)
    try:
        preinstalled.checked_first(lambda *_: None)(
            Benchmarks, conf, repo, [environment], [repo.get_hash_from_name(name) for name in names]
        )
    except SystemExit as stop:
        return stop.code
    return None


def _virtualenv(folder):
    command = [sys.executable, "-m", "virtualenv", "--quiet", "--no-download", "--no-seed", str(folder)]
    subprocess.run(command, check=True)


def test_an_environment_sees_its_own_packages_first(tmp_path):
    """A real environment: what lies beside torch is seen, what a commit brings along wins."""
    install(tmp_path / "node", "torch", "2.11.0+cu130", source="name = 'of the machine'\n")
    install(tmp_path / "node", "emulator", "1", source="name = 'of the machine'\n")
    environment = tmp_path / "environment"
    _virtualenv(environment)
    install(layer.site_packages(environment), "emulator", "2", source="name = 'of the commit'\n")
    assert layer.lay_over(environment, [tmp_path / "node"])
    assert not layer.lay_over(environment, [tmp_path / "node"])
    code = (
        "import emulator, torch; from importlib.metadata import version as v\n"
        "print(torch.name, v('torch'), emulator.name, v('emulator'), sep='|')"
    )
    done = subprocess.run(
        [environment / "bin" / "python", "-I", "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout == "of the machine|2.11.0+cu130|of the commit|2\n"


def test_torch_is_found_without_importing_it(torch, tmp_path):
    """On PYTHONPATH too; with the folders of what it needs, in the order in which Python searches them."""
    found = installed.find_torch()
    assert found.version == "2.11.0+cu130"
    assert found.folders == (torch.resolve(), (tmp_path / "other").resolve())
    assert installed.packages(found.folders)["numpy"].version == "2.5.2"


def test_without_torch_nothing_is_made(environment, monkeypatch, tmp_path, caplog):
    """The message names the interpreter and both ways out; the exit code is not that of a slower release."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(SystemExit, match="2"):
        environment.create()
    assert f"no torch is installed for {sys.executable}" in caplog.text
    assert "or leave out -E" in caplog.text
    assert not Path(environment._path).exists()


def test_the_environment_is_laid_over_torch(environment, torch):
    """Each time anew, since torch may move; what pip left to the old folder is then installed again."""
    environment.create()
    held = layer.site_packages(Path(environment._path)) / "held.pth"
    assert held.read_text().splitlines()[0] == str(torch.resolve())
    environment._set_installed_commit_hash("1" * 40)
    environment.create()
    assert environment.installed_commit_hash == "1" * 40
    held.write_text("/elsewhere\n")
    environment.create()
    assert str(torch.resolve()) in held.read_text()
    assert environment.installed_commit_hash is None


def test_it_runs_the_python_that_runs_asv(environment, conf):
    """Not the first of that version on PATH; and no other version, which could not load this torch."""
    assert environment._executable == sys.executable
    assert environment.name.startswith("preinstalled-py3.")
    assert list(get_environments(conf, ["preinstalled:3.5"], verbose=False)) == []


def test_it_keeps_compiled_modules(environment, torch, monkeypatch):
    """Where Python may keep none, as in many containers, each cell would compile torch; its folder stays as it is."""
    _virtualenv(environment._path)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (torch / "compiled.py").touch()
    code = f"import sys; sys.path.insert(0, {str(torch)!r}); import compiled; print(compiled.__cached__)"
    cached = Path(environment.run(["-c", code]).strip())
    assert cached.is_relative_to(environment._path)
    assert cached.is_file()
    assert not (torch / "__pycache__").exists()


def test_the_build_of_torch_does_not_matter(environment, conf, torch, caplog):
    """2.11.0+cu130 is a build of the 2.11.0 that is held."""
    assert _check(environment, conf, f"{SERIES}-0.11.0", f"{SERIES}-0.12.1") is None
    assert caplog.text == ""


def test_another_torch_is_refused_before_anything_is_measured(environment, conf, torch, caplog):
    """Both versions, where the installed one is, what can be measured with it, and the other way out."""
    assert _check(environment, conf, f"{SERIES}-0.12.1", "ale-py-0.12.1", "torch-2.6.0") == 2
    assert "ale-py-0.12.1 holds torch==2.13.0, torch-2.6.0 holds torch==2.6.0, but installed in" in caplog.text
    assert f"{torch.resolve()} is torch 2.11.0+cu130" in caplog.text
    assert f"measure torch-2.11.0 or {SERIES}, or leave out -E" in caplog.text


def test_a_torch_of_no_series_says_how_to_go_on(environment, conf, monkeypatch, caplog):
    """A nightly build, for example."""
    monkeypatch.setattr(installed, "find_torch", lambda: Torch("2.16.0.dev1", (Path("/nightly"),)))
    assert _check(environment, conf, f"{SERIES}-0.12.1") == 2
    assert "in /nightly is torch 2.16.0.dev1" in caplog.text
    assert "add a series that holds this torch to releases.toml" in caplog.text


def test_no_commit_of_another_torch_is_installed(environment, conf, torch, monkeypatch):
    """asv tries the newest release of every branch where the first does not install: pip would fetch its torch."""
    seen = []
    monkeypatch.setattr(StackEnvironment, "install_project", lambda *args: seen.append(args[-1]))
    repo = get_repo(conf)
    with pytest.raises(util.UserError, match=r"ale-py-0\.12\.1 holds torch==2\.13\.0"):
        environment.install_project(conf, repo, repo.get_hash_from_name("ale-py-0.12.1"))
    suits = repo.get_hash_from_name(f"{SERIES}-0.12.1")
    environment.install_project(conf, repo, suits)
    assert seen == [suits]


def test_a_whole_folder_of_wheels_passes(environment, conf, torch, offline):
    """numpy may come from beside torch, setuptools from the folder."""
    environment.create()
    (offline / "numpy-2.5.2-py3-none-any.whl").unlink()
    assert _check(environment, conf, f"{SERIES}-0.12.1") is None


def test_missing_wheels_are_named_before_anything_is_measured(environment, conf, torch, offline, caplog):
    """All of them, those that torch asks for too, with the command that fetches them."""
    environment.create()
    for name in ("gymnasium-1.4.0", "setuptools-81.0"):
        (offline / f"{name}-py3-none-any.whl").unlink()
    # What another commit left there does not count: it may be gone when this one is installed.
    install(layer.site_packages(Path(environment._path)), "ale-py", "0.11.2")
    assert _check(environment, conf, f"{SERIES}-0.11.2", f"{SERIES}-0.12.1") == 2
    assert f"PIP_NO_INDEX is set, and {offline} has" in caplog.text
    for missing in ("ale-py==0.11.2", "gymnasium==1.4.0", "setuptools<82 (for torch 2.11.0+cu130)"):
        assert f"no wheel for {missing}" in caplog.text
    assert "no wheel for numpy" not in caplog.text
    assert "no wheel for ale-py==0.12.1" not in caplog.text
    assert f"ale-velocity wheelhouse --series {SERIES} --python 3." in caplog.text


def test_a_damaged_wheel_is_named(environment, conf, torch, offline, caplog):
    """As pip would, but before anything is measured."""
    environment.create()
    (offline / "gymnasium-1.4.0-py3-none-any.whl").write_bytes(b"half")
    assert _check(environment, conf, f"{SERIES}-0.12.1") == 2
    assert "gymnasium-1.4.0-py3-none-any.whl: is not a whole wheel" in caplog.text


def test_what_asv_installs_is_missed_before_it_tries(environment, torch, offline, caplog):
    """asv would end with a traceback; an environment that is there needs it no more."""
    (offline / "build-1.6-py3-none-any.whl").unlink()
    with pytest.raises(SystemExit, match="2"):
        environment.create()
    assert f"{offline} has\n  no wheel for build (for asv)\n" in caplog.text
    assert not Path(environment._path).exists()
    environment.check_presence = lambda: True
    environment.create()


def test_where_pip_looks_elsewhere_nothing_is_missing(environment, conf, torch, offline, monkeypatch):
    """Only pip can tell then."""
    (offline / "gymnasium-1.4.0-py3-none-any.whl").unlink()
    monkeypatch.setenv("PIP_FIND_LINKS", "https://example.invalid/wheels")
    assert _check(environment, conf, f"{SERIES}-0.12.1") is None
    monkeypatch.setenv("PIP_FIND_LINKS", str(offline))
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    assert _check(environment, conf, f"{SERIES}-0.12.1") is None


def test_stacks_are_not_checked_for_other_environments(conf, torch):
    """The type `stack` installs the torch that a commit holds."""
    (stack,) = get_environments(conf, None)
    assert stack.tool_name == "stack"
    assert _check(stack, conf, "ale-py-0.12.1") is None
