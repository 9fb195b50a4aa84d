"""`timeline refresh` against an index served here: hand-made answers of the simple API, and garbage."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from ale_velocity import files
from ale_velocity.cli import main
from ale_velocity.timeline import index, manifest, refresh, writer
from package_index import MANIFEST, serve

JSON = index.CONTENT_TYPE
ALE_PY_LINE = '    { version = "0.13.0", date = 2026-09-20T10:05:29Z, python = ">=3.11,<3.13" },\n'
TORCH_LINES = (
    '    { version = "2.15.1", date = 2026-11-10T08:00:00Z, python = ">=3.11,<3.12" },\n'
    '    { version = "2.16.1", date = 2026-11-13T08:00:00Z, python = ">=3.11,!=3.12.*,<3.14" },\n'
    '    { version = "2.17.0", date = 2026-11-14T08:00:00Z, python = ">=3.11" },\n'
    '    { version = "2.18.0", date = 2026-11-15T08:00:00Z, python = ">=3.11,<3.15" },\n'
)
NEW_NAMES = [
    *("ale-py-0.13.0", "torch-2.15.1", "torch-2.16.1", "torch-2.17.0", "torch-2.18.0"),
    "ale-py-torch-2.11-0.13.0",
]


@pytest.fixture
def served(monkeypatch):
    """Return the index that a refresh asks; pip, which takes a second to name one, has tests of its own."""
    with serve() as offered:
        monkeypatch.setattr(index, "default_url", lambda: offered.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield offered


@pytest.fixture
def path(tmp_path):
    """Return a manifest's path."""
    path = tmp_path / "releases.toml"
    path.write_text(MANIFEST)
    return path


def run(path, *options):
    return main(["timeline", "refresh", "--manifest", str(path), *options])


def test_new_releases_are_appended_to_their_series(served, path, capsys):
    """Lines come in where they belong, nothing else changes, old commits stay, and the names are for machines."""
    before = writer.build(path)
    names = path.with_name("names")
    assert run(path, "--index", served.url + "/", "--names-to", str(names)) == 0
    expected = MANIFEST.replace("    # Append below.\n", "    # Append below.\n" + ALE_PY_LINE)
    expected = expected.replace('python = ">=3.11" },\n', 'python = ">=3.11" },\n' + TORCH_LINES)
    expected = expected.replace("after the bracket\n", "after the bracket\n" + ALE_PY_LINE)
    assert path.read_text() == expected
    assert names.read_text().split() == NEW_NAMES
    after = writer.build(path)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == set(NEW_NAMES)
    assert sorted(served.asked) == [("/simple/ale-py/", JSON), ("/simple/torch/", JSON)]
    output = capsys.readouterr().out
    assert f"+{ALE_PY_LINE}" in output
    assert "torch: torch-2.15.1, torch-2.16.1, torch-2.17.0, torch-2.18.0\n" in output
    assert "ale-py-torch-2.11: left out: 0.13.1 was yanked\n" in output
    assert "ale-py: left out: 0.13.2 has no wheel for CPython 3.10 or later on Linux x86-64\n" in output
    assert "torch: left out: 2.16.0 is followed by 2.16.1 of the same minor version\n" in output
    assert "torch: left out: 2.15.2 came after 2.16.0, which is higher\n" in output
    assert output.endswith(f"{path}: appended 6 releases\n")


def test_nothing_new(served, path, capsys):
    """A second refresh says so for each series, writes no names and leaves the file alone."""
    assert run(path) == 0
    refreshed, stamp = path.read_bytes(), path.stat().st_mtime_ns
    capsys.readouterr()
    names = path.with_name("names")
    names.write_text("of another day\n")
    assert run(path, "--names-to", str(names)) == 0
    output = capsys.readouterr().out
    assert "ale-py: nothing new after 0.13.0\n" in output
    assert "torch: nothing new after 2.18.0\n" in output
    assert output.endswith(f"{path}: nothing to append\n")
    assert names.read_text() == ""
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (refreshed, stamp)


def test_a_dry_run_only_shows(served, path, capsys):
    """The same diff and names, and the file as it was."""
    names = path.with_name("names")
    assert run(path, "--dry-run", "--names-to", str(names)) == 0
    output = capsys.readouterr().out
    assert f"+{ALE_PY_LINE}" in output
    assert output.endswith(f"{path}: would append 6 releases\n")
    assert names.read_text().split() == NEW_NAMES
    assert path.read_text() == MANIFEST


def test_series_by_name(served, path, capsys):
    """Only the named series, and only its package is asked for; an unknown name lists the nearest."""
    assert run(path, "torch") == 0
    assert [page for page, _ in served.asked] == ["/simple/torch/"]
    assert path.read_text() == MANIFEST.replace('python = ">=3.11" },\n', 'python = ">=3.11" },\n' + TORCH_LINES)
    assert run(path, "torhc") == 2
    assert "no series 'torhc'; did you mean torch?" in capsys.readouterr().err


def test_pip_says_which_index(monkeypatch, tmp_path):
    """Its environment variable, then its configuration file, then a default that only pip knows."""
    for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://a-long-name-with-hyphens.invalid/from-a-file/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    assert index.default_url() == "https://a-long-name-with-hyphens.invalid/from-a-file/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "https://variable.invalid/simple")
    assert index.default_url() == "https://variable.invalid/simple"
    monkeypatch.delenv("PIP_INDEX_URL")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    assert index.default_url().startswith("https://")


def test_without_pip_an_index_is_asked_for(monkeypatch, path, capsys):
    """Some virtual environments have no pip."""
    monkeypatch.setattr(index.sys, "executable", "false")
    assert run(path) == 2
    assert "name one with --index URL" in capsys.readouterr().err


def entry(**changes):
    name = "ale_py-0.13.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    return {"filename": name, "upload-time": "2026-09-20T10:05:30Z", "yanked": False, **changes}


def body(**changes):
    return json.dumps({"files": [{key: value for key, value in entry(**changes).items() if value}]}).encode()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((200, "text/html", b"<html>"), "it is text/html, not JSON"),
        ((404, "text/html", b"not here"), "answers 404 Not Found"),
        ((503, "text/plain", b"later"), "answers 503 Service Unavailable"),
        ((200, JSON, body()[:-9]), "its JSON is cut short or broken"),
        ((200, JSON, b"\xff\xfe\x00"), "its JSON is cut short or broken"),
        ((200, JSON, b"[]"), "its JSON is not what PEP 691 says"),
        ((200, JSON, b'{"files": null}'), "its JSON is not what PEP 691 says"),
        ((200, JSON, body(filename=None)), "its JSON is not what PEP 691 says (KeyError('filename'))"),
        ((200, JSON, body(**{"upload-time": None})), "it does not say when ale_py-0.13.0-cp311-cp311"),
        ((200, JSON, body(**{"upload-time": "yesterday"})), "it does not say when ale_py-0.13.0-cp311-cp311"),
        ((200, JSON, body(**{"upload-time": "2026-13-20T10:05:30Z"})), "month must be in 1..12"),
    ],
)
def test_garbage_is_named_and_changes_nothing(served, path, capsys, answer, reason):
    """One message with the URL, what is wrong and the way out; the manifest and the names' file are as they were."""
    served.pages = dict.fromkeys(served.pages, answer)
    assert run(path, "--names-to", str(path.with_name("names"))) == 2
    message = capsys.readouterr().err
    assert reason in message
    assert f"{served.url}/ale-py/" in message
    assert "--index URL" in message
    assert message.count("\n") == 1
    assert path.read_text() == MANIFEST
    assert list(path.parent.iterdir()) == [path]


def test_an_answer_that_ends_early(served, path, capsys):
    """The server promises more than it sends."""
    served.length = 10**6
    assert run(path, "ale-py") == 2
    assert f"{served.url}/ale-py/: the package index does not answer (IncompleteRead" in capsys.readouterr().err
    assert path.read_text() == MANIFEST


def test_no_answer(served, path, capsys, monkeypatch):
    """A server that is silent, one that is not there, and addresses that are none."""
    monkeypatch.setattr(index, "TIMEOUT_S", 0.1)
    served.delay_s = 0.5
    for url, reason in (
        (served.url, "/ale-py/: the package index does not answer (timed out)"),
        ("http://127.0.0.1:9/simple", "http://127.0.0.1:9/simple/ale-py/: the package index does not answer ("),
        ("http://[/simple", "http://[/simple/ale-py/: the package index does not answer (Invalid IPv6"),
        ("file:///tmp", "file:///tmp/ale-py/: is no http or https address"),
        ("https://me:secret@index.invalid/simple", "index.invalid: the index's address holds a user's name"),
    ):
        assert run(path, "ale-py", "--index", url) == 2
        message = capsys.readouterr().err
        assert reason in message
        assert "--index URL" in message
        assert "secret" not in message
    assert path.read_text() == MANIFEST


def release(version, date, *, yanked=False):
    """Return a release that every CPython from 3.11 on can run."""
    tag = index.tags.Tag("py3", "none", "any")
    uploaded = dt.datetime.fromisoformat(f"{date}+00:00")
    file = index.File(Version(version), uploaded, frozenset({tag}), SpecifierSet(">=3.11"), yanked)
    return index.IndexRelease(file.version, (file,))


NOW = dt.datetime(2027, 1, 1, tzinfo=dt.timezone.utc)


@pytest.mark.parametrize(
    ("offered", "new", "left_out"),
    [
        # Dated before the series' last one, or with it.
        ([release("0.13.0", "2026-08-16T23:18:56")], [], "0.13.0 is dated 2026-08-16T23:18:56Z, not after 0.12.1"),
        # By number, not by text.
        ([release("0.12.10", "2026-09-01T00:00:00"), release("0.12.9", "2026-08-30T00:00:00")],
         ["0.12.9", "0.12.10"], None),
        # Still being uploaded.
        ([release("0.13.0", "2026-12-31T10:00:00")], [], "0.13.0 is less than a day old"),
        # One that was yanked keeps no other from its place.
        ([release("0.14.0", "2026-09-01T00:00:00", yanked=True), release("0.13.0", "2026-09-02T00:00:00")],
         ["0.13.0"], "0.14.0 was yanked"),
    ],
)  # fmt: skip
def test_which_releases_count(path, offered, new, left_out):
    """Strictly later and higher than the one before."""
    (series, *_) = manifest.load(path)
    found = refresh.news(series, offered, NOW)
    assert [str(one.version) for one in found.new] == new
    assert left_out in found.left_out[0] if left_out else not found.left_out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('python = ">=3.11" },\n]', 'python = ">=3.11" }\n]'),
        ('python = ">=3.11" },\n]', 'python = ">=3.11" }]'),
        ("[series.torch]", "[ series . torch ]"),
    ],
)
def test_a_manifest_of_another_form(served, path, capsys, old, new):
    """Where lines cannot be added it is left alone, and the lines are given for adding them by hand."""
    path.write_text(text := MANIFEST.replace(old, new))
    assert run(path, "torch") == 2
    assert path.read_text() == text
    message = capsys.readouterr().err
    assert "a comma at its end" in message
    assert TORCH_LINES.splitlines()[0].strip() in message


def test_line_ends_mode_and_link_stay(served, path):
    """The file is replaced, yet stays what it was in every other way."""
    path.write_bytes(MANIFEST.replace("\n", "\r\n").encode())
    path.chmod(0o640)
    link = path.with_name("link.toml")
    link.symlink_to(path)
    assert run(link, "torch") == 0
    content = path.read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n") == MANIFEST.count("\n") + 4
    assert path.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()


def test_a_stop_while_writing_leaves_the_old_file(served, path, monkeypatch, capsys):
    """Ctrl-C at the worst moment: exit code 130, and no file left over."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.shutil, "copymode", stop)
    assert run(path) == 130
    assert path.read_text() == MANIFEST
    assert list(path.parent.iterdir()) == [path]


def test_names_need_a_folder(served, path, capsys):
    """Looked at before anything is asked or written."""
    assert run(path, "--names-to", "/nowhere/at/all") == 2
    assert "--names-to /nowhere/at/all: there is no folder /nowhere/at" in capsys.readouterr().err
    assert served.asked == []
