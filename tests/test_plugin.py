"""What the plugin adds to asv, in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from asv import util
from asv.config import Config
from asv.environment import get_environments
from asv.repo import get_repo

from ale_velocity.asv_plugin import environment
from ale_velocity.timeline import manifest


@pytest.fixture
def checkout(root, tmp_path):
    """Return a folder that has the real configuration and manifest, and nothing else."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("asv.conf.json", "releases.toml"):
        (folder / name).write_bytes((root / name).read_bytes())
    return folder


@pytest.fixture
def conf(checkout, monkeypatch):
    """Return that configuration, loaded as asv loads it."""
    monkeypatch.chdir(checkout)
    return Config.load("asv.conf.json")


@pytest.fixture
def run_asv(checkout, tmp_path):
    """Return a function that runs an asv command on that configuration, from another folder, in an empty HOME."""
    (tmp_path / "home").mkdir()

    def run(*args, **environ):
        command = [sys.executable, "-m", "asv", *args, "--config", "checkout/asv.conf.json"]
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), **environ}
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    return run


def test_asv_builds_the_timeline_it_opens(conf, root):
    """A fresh clone needs no extra step: the branch is there as soon as asv asks."""
    repo = get_repo(conf)
    (names,) = (
        [release.name for release in one.releases]
        for one in manifest.load(root / "releases.toml")
        if one.name == "ale-py"
    )
    commits = repo.get_branch_commits("ale-py")
    assert [repo.get_name_from_hash(commit) for commit in commits] == names[::-1]


def test_an_unknown_release_lists_the_nearest(conf):
    """In a name and in a range."""
    repo = get_repo(conf)
    with pytest.raises(util.UserError, match="no 'ale-py-0.12.1x': did you mean ale-py-0.12.1"):
        repo.get_hash_from_name("ale-py-0.12.1x")
    with pytest.raises(util.UserError, match="did you mean"):
        repo.get_hashes_from_range("ale-py-0.11.0..ale-py-0.12.9x")
    assert repo.get_release(repo.get_hash_from_name("ale-py-0.12.1")).version == "0.12.1"
    with pytest.raises(util.UserError, match="the timeline has no '0000': see"):
        repo.get_release("0000")


def test_a_bad_manifest_is_an_error_of_asvs_kind(conf, checkout):
    """asv ends with the message and exit code 1, without a traceback."""
    (checkout / "releases.toml").write_text("[series.x]\npackage = 1\n")
    with pytest.raises(util.UserError, match="series x: lacks held, releases"):
        get_repo(conf)


def test_settings_name_the_environment(conf, monkeypatch):
    """The defaults come from the configuration, the caller's variables win, and auto is named by what it finds."""
    monkeypatch.setattr(environment, "has_nvidia_gpu", lambda: False)
    (env,) = get_environments(conf, None)
    assert env.env_vars == {
        "ALE_VELOCITY_PROTOCOL": "standard",
        "ALE_VELOCITY_DEVICE": "cpu",
        "ALE_VELOCITY_GAME": "pong",
        "ALE_VELOCITY_TORCH_THREADS": "default",
    }
    directory = env.dir_name
    monkeypatch.setattr(environment, "has_nvidia_gpu", lambda: True)
    monkeypatch.setenv("ALE_VELOCITY_PROTOCOL", "reference")
    (env,) = get_environments(conf, None)
    assert (env.env_vars["ALE_VELOCITY_PROTOCOL"], env.env_vars["ALE_VELOCITY_DEVICE"]) == ("reference", "cuda")
    assert "PROTOCOLreference" in env.name
    assert env.dir_name == directory  # one installation serves them all


@pytest.mark.parametrize(
    ("variable", "value"), [("ALE_VELOCITY_PROTOCOL", "fast"), ("ALE_VELOCITY_PROTOCOLS", "quick")]
)
def test_an_unknown_setting_stops_asv(run_asv, variable, value):
    """Through the real command: exit code 1, one message that names the variable, no traceback."""
    done = run_asv("run", "ale-py", **{variable: value})
    assert done.returncode == 1
    assert variable in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_no_prompt_in_an_empty_home(run_asv, tmp_path):
    """The machine is described by itself, under the name that was given."""
    done = run_asv("run", "ale-py-0.99", ALE_VELOCITY_MACHINE="lab-7")
    assert done.returncode == 1
    assert "no 'ale-py-0.99'" in done.stdout + done.stderr
    machines = json.loads((tmp_path / "home" / ".asv-machine.json").read_text())
    assert machines["lab-7"]["machine"] == "lab-7"
    assert int(machines["lab-7"]["num_cpu"]) >= 1


def test_a_gpu_is_looked_for_not_guessed(monkeypatch):
    """A driver that lists a GPU means cuda; none, or one that fails, means cpu."""
    monkeypatch.setattr(environment.shutil, "which", lambda _: "nvidia-smi")
    monkeypatch.setattr(environment.util, "check_output", lambda *_, **__: "GPU 0: NVIDIA H200\n")
    assert environment.has_nvidia_gpu()

    def fail(*_args, **_kwargs):
        raise OSError

    monkeypatch.setattr(environment.util, "check_output", fail)
    assert not environment.has_nvidia_gpu()
