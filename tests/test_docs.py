"""The commands in the README, in docs/ and at the top of the scripts are ones that can be typed."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
import sys

import pytest
from asv.commands import make_argparser

from ale_velocity import cli
from conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SCRIPTS = sorted((ROOT / "tools").glob("*.py"))
PROGRAM = re.compile(r"(?:[A-Z_]+=\S+ )*(?P<line>(?:ale-velocity|asv|python3? (?:tools/\S+\.py|-m asv)) .*)")
PLACEHOLDER = re.compile(r"\.\.\.|\w\|\w| \[|=N\b|--help")  # no command, or one that says how to type it


def of_page(text):
    """Return a page's lines of code: of its blocks, with continued lines joined, and between backticks."""
    blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [*re.sub(r"\\\n", " ", blocks).splitlines(), *re.findall(r"`([^`]+)`", prose)]


def of_script(text):
    """Return the indented lines of a script's docstring, without what is said of them."""
    return [line.strip().split("  ")[0] for line in ast.get_docstring(ast.parse(text)).splitlines() if line[:1] == " "]


def commands():
    """Return the words of each command that can be typed as it stands; a bare name such as `asv run` is none."""
    lines = [line for page in PAGES for line in of_page(page.read_text())]
    lines += [line for script in SCRIPTS for line in of_script(script.read_text())]
    found = (PROGRAM.match(" ".join(line.split())) for line in lines)
    typed = {match["line"] for match in found if match and not PLACEHOLDER.search(match["line"])}
    return sorted(words for words in (tuple(shlex.split(line)) for line in typed) if len(words) > 2)


COMMANDS = commands()


def test_there_are_such_commands():
    """The patterns above find all kinds."""
    programs = {words[0] if words[0] != "python" else words[1] for words in COMMANDS}
    assert {"ale-velocity", "asv", "python3", "tools/in_turn.py", "tools/fidelity.py"} <= programs


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[0] == "ale-velocity"], ids=" ".join)
def test_ours_parse(words):
    """Options, and values that have to be numbers or one of a few words."""
    assert callable(cli.make_parser().parse_args(words[1:]).run)


@pytest.mark.parametrize("words", [words for words in COMMANDS if "asv" in (words[0], words[2])], ids=" ".join)
def test_those_of_asv_parse(words):
    """As asv reads them."""
    parser, _ = make_argparser()
    assert callable(parser.parse_args(words[words.index("asv") + 1 :]).func)


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[1].startswith("tools/")], ids=" ".join)
def test_those_of_the_scripts_parse(words, monkeypatch, capsys):
    """What stands before `--help` is read first, and nothing is measured."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    monkeypatch.setattr(sys, "argv", [*words[1:], "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / words[1]), run_name="__main__")
    assert (ended.value.code, capsys.readouterr().err) == (0, "")
