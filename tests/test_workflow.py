"""The weekly refresh: its workflow's commands are ours, and its steps do what they say, with asv and gh played."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap

import pytest
from asv.commands import make_argparser

from ale_velocity import cli
from conftest import ROOT
from package_index import MANIFEST, serve

WORKFLOW = (ROOT / ".github" / "workflows" / "refresh.yml").read_text()
JOBS = {job.split(":")[0].strip(): job for job in re.split(r"\n  (?=\w+:\n|# )", WORKFLOW.split("\njobs:\n")[1])}
NEW = "ale-py-0.13.0_torch-2.15.1_torch-2.16.1_torch-2.17.0_torch-2.18.0_ale-py-torch-2.11-0.13.0"


def scripts():
    """Return each step's shell script by the step's name."""
    steps = re.findall(r"^      - name: (.*)\n((?:        .*\n|\n)*)", WORKFLOW + "\n", re.MULTILINE)
    return {name: _script(step) for name, step in steps}


def _script(step):
    found = re.search(r"^        run: (?:\|\n((?:          .*\n|\n)*)|(.*))", step, re.MULTILINE)
    return found[2] or textwrap.dedent(found[1])


def commands(program):
    """Return the arguments of every command line of a program, up to what it is piped or chained to."""
    lines = re.sub(r"\\\n", " ", "\n".join(scripts().values())).splitlines()
    for line in lines:
        if line.strip().startswith(f"{program} "):
            words = shlex.shlex(line, posix=True, punctuation_chars="|>&;")
            words.whitespace_split = True
            yield list(itertools.takewhile(lambda word: not set(word) <= set("|>&;"), words))[1:]


def test_it_is_yaml():
    """As GitHub reads it: the same scripts as found here by their indentation."""
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load(WORKFLOW)["jobs"]
    read = {step["name"]: step["run"] for job in jobs.values() for step in job["steps"] if "run" in step}
    assert {name: script.strip() for name, script in read.items()} == {
        name: script.strip() for name, script in scripts().items()
    }


def test_our_commands_have_these_options():
    """Each `ale-velocity` line parses."""
    lines = list(commands("ale-velocity"))
    assert [line[:2] for line in lines] == [["timeline", "build"], ["timeline", "refresh"], ["timeline", "build"]]
    for line in lines:
        assert callable(cli.make_parser().parse_args(line).run)


def test_asv_has_these_options_and_benchmarks():
    """Each `asv` line parses, names a configuration that exists, and its pattern finds cells of both loops."""
    parser, _ = make_argparser()
    run, compare = map(parser.parse_args, commands("asv"))
    assert run.range == "--no-walk $name~1 $name"
    assert (compare.revision1, compare.revision2) == ("$name~1", "$name")
    assert (ROOT / run.config).is_file()
    assert run.config == compare.config
    known = json.loads((ROOT / "results" / "benchmarks.json").read_text())
    cells = [
        f"{name}({loop}, {num_envs})"
        for name, benchmark in known.items()
        if name != "version"
        for loop in benchmark["params"][0]
        for num_envs in benchmark["params"][-1]
    ]
    assert len([cell for cell in cells if re.search(run.bench[0], cell)]) == 2 * 2 * 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("name", scripts())
def test_scripts_are_bash_and_hold_no_foreign_text(name):
    """Values reach them by the environment: an expression would be pasted in as code."""
    script = scripts()[name]
    assert "${{" not in script
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_only_the_second_job_may_write():
    """It runs nothing but git and gh; what runs new releases has no right to write and keeps no token."""
    measure, propose = JOBS["measure"], JOBS["propose"]
    assert "write" not in re.sub(r"#.*", "", measure)
    assert "persist-credentials: false" in measure
    assert not re.search(r"\b(pip|asv|ale-velocity)\b", propose)
    assert re.search(r"^permissions: \{\}$", WORKFLOW, re.MULTILINE)
    uses = re.findall(r"uses: (\S+)", WORKFLOW)
    assert {use.split("@")[0] for use in uses} == {"actions/checkout", "actions/setup-python"}
    assert all(re.fullmatch(r"v\d+", use.split("@")[1]) for use in uses)


class Runner:
    """A checkout with a remote, where the steps' scripts run; `asv`, `gh` and `sudo` note their arguments."""

    def __init__(self, folder):
        self.folder, self.checkout = folder, folder / "checkout"
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.write("ale-velocity", f'exec "{sys.executable}" -m ale_velocity.cli "$@"')
        for name in ("asv", "gh", "sudo"):
            self.write(name, f"""printf '%s|' {name} "$@" >> "{folder}/log"; echo >> "{folder}/log" """)
        self.git("init", "--quiet", "--bare", str(folder / "remote"), cwd=folder)
        self.git("clone", "--quiet", str(folder / "remote"), str(self.checkout), cwd=folder)
        (self.checkout / "releases.toml").write_text(MANIFEST)
        self.git("add", ".")
        self.git("-c", "user.name=a", "-c", "user.email=a@b.invalid", "commit", "--quiet", "--message", "First")

    def write(self, name, script):
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def git(self, *args, cwd=None):
        done = subprocess.run(["git", *args], cwd=cwd or self.checkout, check=True, capture_output=True, text=True)
        return done.stdout

    def step(self, name, **variables):
        """Run a step as GitHub does; return its outputs."""
        output = self.folder / "output"
        output.write_text("")
        environment = {
            **os.environ,
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_OUTPUT": str(output),
            **variables,
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", scripts()[name]]
        subprocess.run(command, cwd=self.checkout, env=environment, check=True, capture_output=True)
        text = output.read_text()
        many = dict(re.findall(r"^(\w+)<<(?:\w+)\n(.*?)\n[0-9a-f]{32}$", text, re.MULTILINE | re.DOTALL))
        return {**dict(re.findall(r"^(branch)=(.*)$", text, re.MULTILINE)), **many}

    @property
    def log(self):
        return (self.folder / "log").read_text().splitlines()


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """Return a runner whose pip uses the index that is served here."""
    for program in ("bash", "git", "openssl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    with serve() as offered:
        monkeypatch.setenv("PIP_INDEX_URL", offered.url)
        yield Runner(tmp_path)


def test_from_new_releases_to_a_pull_request(runner):
    """The patch, the measured pairs, the comparison in the text, and the commit on the branch."""
    found = runner.step("Append new releases")
    assert found["branch"] == f"refresh/{NEW}"
    assert '+    { version = "2.18.0"' in found["patch"]
    assert runner.log[0].startswith(f"gh|pr|list|--state|all|--head|refresh/{NEW}|")

    runner.write("asv", 'echo "asv $1 $4 $5" | tee -a "$RUNNER_TEMP/log"; test "$1" = compare')
    comparison = runner.step("Measure each new release and the one before it")["comparison"]
    assert comparison.count("### ") == 6
    assert (
        "### torch-2.15.1 and the release before it\n```\n"
        "asv run ended with exit code 1: see the log of the workflow.\n"
        "asv compare torch-2.15.1~1 torch-2.15.1\n```"
    ) in comparison
    assert "asv run --no-walk torch-2.15.1~1 torch-2.15.1 --skip-existing-successful" in runner.log

    runner.git("checkout", "--quiet", "releases.toml")  # the second job has its own checkout
    variables = {"BRANCH": found["branch"], "PATCH": found["patch"], "COMPARISON": comparison}
    runner.step("Open a pull request", **variables)
    pushed = runner.git("show", f"{found['branch']}:releases.toml", cwd=runner.folder / "remote")
    assert pushed.count("version = ") == MANIFEST.count("version = ") + 6
    text = "\n".join(runner.log)
    assert "gh|pr|create|--head|refresh/" in text
    assert "\n### torch-2.18.0 and the release before it\n" in text


def test_nothing_new_and_proposed_before(runner):
    """Neither measures anything."""
    runner.write("gh", "echo https://forge.invalid/pull/7")
    assert runner.step("Append new releases") == {}
    # The file has them now.
    runner.write("gh", "echo asked in vain >&2; exit 1")
    assert runner.step("Append new releases") == {}
