"""`asv publish` on planted series: the regressions page, its feed, the list page and the overview."""

from __future__ import annotations

import datetime as dt
import html
import json
import math
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest

from ale_velocity.units import HIGHER_IS_BETTER
from planted import RATE, STEP_TIME, Project, windows

SERIES = ("ale-py-0.11.0", "ale-py-0.11.1", "ale-py-0.11.2", "ale-py-0.12.0", "ale-py-0.12.1")
ATOM = "{http://www.w3.org/2005/Atom}"
RATES = {
    "gain": (10000, 10050, 15000, 15100, 15050),
    "loss": (10000, 10050, 10000, 7000, 7050),
    "small_gain": (10000, 10000, 10000, 10500, 10500),
    "small_loss": (10000, 10000, 10000, 9400, 9400),
    "none": (10000, 10050, 9990, 10020, 10000),
    "recovered": (20000, 10000, 10000, 20000, 20000),
    "skipped": (math.nan, math.nan, 10000, 7000, math.nan),
    "failed": (None,) * 5,
}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Return a published project; the times are those of the rates, so that what is a gain there is a loss here."""
    project = Project(tmp_path_factory.mktemp("published") / "project")
    for name, unit in ((RATE, "env-steps/s"), (STEP_TIME, "microseconds/step")):
        project.add_benchmark(name, unit, params=tuple(RATES))
    for number, release in enumerate(SERIES):
        cells = [values[number] for values in RATES.values()]
        sampled = [cell if cell is None or math.isnan(cell) else windows(cell, spread=0) for cell in cells]
        project.add_result(release, {RATE: sampled, STEP_TIME: sampled})
    done = project.asv("publish")
    assert done.returncode == 0, done.stdout
    return project


def losses(project):
    """Return (release before, release after, value before, value after) of each listed loss, by benchmark."""
    names = {commit: name for name, commit in project.commits.items()}
    revisions = {
        int(number): names[commit] for number, commit in project.page("index.json")["revision_to_hash"].items()
    }
    found = {}
    for name, _path, _params, _index, _latest, _best, jumps in project.page("regressions.json")["regressions"]:
        # null stands for the commit just before.
        found[name] = [
            (revisions[first] if first is not None else SERIES[SERIES.index(revisions[second]) - 1],
             revisions[second], before, after)
            for first, second, before, after in jumps
        ]  # fmt: skip
    return found


def test_losses_are_listed_and_gains_are_not(published):
    """In the direction of the unit, with the pair of releases, also where it recovered and next to gaps."""
    assert losses(published) == {
        f"{RATE}('loss')": [("ale-py-0.11.2", "ale-py-0.12.0", 10000, 7025)],
        f"{RATE}('small_loss')": [("ale-py-0.11.2", "ale-py-0.12.0", 10000, 9400)],
        f"{RATE}('recovered')": [("ale-py-0.11.0", "ale-py-0.11.1", 20000, 10000)],
        f"{RATE}('skipped')": [("ale-py-0.11.2", "ale-py-0.12.0", 10000, 7000)],
        f"{STEP_TIME}('gain')": [("ale-py-0.11.1", "ale-py-0.11.2", 10025, 15050)],
        f"{STEP_TIME}('recovered')": [("ale-py-0.11.2", "ale-py-0.12.0", 10000, 20000)],
    }


def test_losses_name_their_branch(published):
    """The page selects by branch as soon as two are configured; asv leaves it out where only one has results."""
    assert {item[2]["branch"] for item in published.page("regressions.json")["regressions"]} == {"ale-py"}


def test_latest_and_best_values(published):
    """The best of a rate is the highest."""
    listed = {item[0]: (item[4], item[5]) for item in published.page("regressions.json")["regressions"]}
    assert listed[f"{RATE}('loss')"] == (7025, 10000)
    assert listed[f"{RATE}('recovered')"] == (20000, 20000)
    assert listed[f"{STEP_TIME}('gain')"] == (15050, 10025)


def test_the_feed_says_what_happened(published):
    """Percentages of the value before, words for the unit, releases by name, the day of measurement."""
    feed = ET.parse(published.html / "regressions.xml").getroot()  # noqa: S314 (written by the command above)
    entries = {entry.findtext(f"{ATOM}title"): entry for entry in feed.iter(f"{ATOM}entry")}
    assert set(entries) == {
        f"-29.75% {RATE}('loss')",
        f"-6.00% {RATE}('small_loss')",
        f"-50.00% {RATE}('recovered')",
        f"-30.00% {RATE}('skipped')",
        f"+50.12% {STEP_TIME}('gain')",
        f"+100.00% {STEP_TIME}('recovered')",
    }
    loss = entries[f"-29.75% {RATE}('loss')"]
    assert loss.findtext(f"{ATOM}updated") == "2026-11-01T12:00:00Z"
    link, text = loss.findtext(f"{ATOM}content").split("</a>")
    assert html.unescape(link) == f'<a href="{loss.find(f"{ATOM}link").get("href")}">Regression'
    assert text.split("<br>\n") == [
        " from ale-py-0.11.2 to ale-py-0.12.0 of 2026-05-30: 29.75% lower, where higher is better.",
        "New value: 7025 env-steps/s, old value: 10000 env-steps/s.",
        "Latest value: 7025 env-steps/s (29.75% worse than the best value 10000 env-steps/s).",
    ]
    time = entries[f"+50.12% {STEP_TIME}('gain')"].findtext(f"{ATOM}content")
    assert "50.12% higher, where lower is better." in time
    recovered = entries[f"-50.00% {RATE}('recovered')"].findtext(f"{ATOM}content")
    assert recovered.endswith("Latest value: 20000 env-steps/s.<br>\nRecovered in ale-py-0.12.0.")


def test_the_list_page_shows_the_recovery_as_the_recent_change(published):
    """With its own pair of releases."""
    (path,) = published.html.glob("graphs/**/summary.json")
    rows = {row["pretty_name"]: row for row in json.loads(path.read_text())}
    revisions = published.page("index.json")["revision_to_hash"]
    recovered = rows[f"{RATE}('recovered')"]
    assert (recovered["prev_value"], recovered["last_value"]) == (10000, 20000)
    assert revisions[str(recovered["change_rev"][1])] == published.commits["ale-py-0.12.0"]
    assert rows[f"{RATE}('none')"]["change_rev"] is None
    assert rows[f"{RATE}('failed')"]["last_value"] is None


def test_page_scripts_know_the_rates(published):
    """A rise is painted as a gain, and the largest loss comes first; the scripts are still JavaScript."""
    lists, regressions = ((published.html / name).read_text() for name in ("summarylist.js", "regressions.js"))
    rates = json.dumps([unit for unit, higher in HIGHER_IS_BETTER.items() if higher])
    assert (
        lists.count(f"if ($.inArray(unit, {rates}) >= 0) {{ change = -change; }}\n                if (change > 5)") == 1
    )
    assert regressions.count(f"($.inArray(benchmark.unit, {rates}) >= 0 ? 1 / factor : factor) + 'x'") == 2
    if shutil.which("node"):
        for name in ("summarylist.js", "regressions.js"):
            subprocess.run(["node", "--check", str(published.html / name)], check=True)


def test_stock_asv_lists_the_gain(published, tmp_path):
    """Without the plugin the gains of rates are listed, the losses are not."""
    published.without_plugin()
    try:
        assert published.asv("publish", "--html-dir", str(tmp_path / "html")).returncode == 0
    finally:
        published.configure()
    listed = {item[0] for item in json.loads((tmp_path / "html" / "regressions.json").read_text())["regressions"]}
    assert f"{RATE}('gain')" in listed
    assert f"{RATE}('loss')" not in listed


def test_a_gap_does_not_change_the_overview(tmp_path):
    """Two series, one of which was not measured at the last release (asv issue 894)."""
    project = Project(tmp_path / "project")
    project.add_benchmark(RATE, "env-steps/s", params=("slow", "fast"))
    for release, fast in zip(SERIES[2:], (100000.0, 100000.0, math.nan), strict=True):
        project.add_result(release, {RATE: [1000.0, fast]})
    assert project.asv("publish").returncode == 0
    overview = project.page(f"graphs/summary/{RATE}.json")
    assert [value for _, value in overview] == pytest.approx([10000.0] * 3)
    (path,) = (path for path in project.html.glob("graphs/**/summary.json"))
    assert [row["change_rev"] for row in json.loads(path.read_text())] == [None, None]


def test_different_work_is_no_loss_of_a_release(tmp_path):
    """Not on the regressions page nor in the feed; the release's page and its data say what it is."""
    project = Project(tmp_path / "project")
    project.add_benchmark(RATE, "env-steps/s", params=("known", "unknown"))
    for release, value in zip(SERIES[1:], (10000, 10000, 7000, 7000), strict=True):
        result = project.add_result(release, {RATE: [windows(value, processes=6)] * 2})
        project.add_record(result, f"{RATE}-0", behaviour="1-aaaa" if value == 10000 else "1-bbbb")
    done = project.asv("publish")
    assert done.returncode == 0, done.stdout
    assert list(losses(project)) == [f"{RATE}('unknown')"]
    assert f"{RATE}('known')" not in (project.html / "regressions.xml").read_text()
    page = (project.html / "release" / project.commits["ale-py-0.12.0"][:8] / "index.html").read_text()
    assert "<p>1 slower, 1 different work</p><p>Fingerprint of the work: <code>1-bbbb</code></p>" in page
    why = "different work than ale-py-0.11.2: the same seed and actions gave other observations or rewards"
    assert page.count(why) == 1
    assert why in (project.html / "ale-velocity" / "data" / "0.js").read_text()
    after = (project.html / "release" / project.commits["ale-py-0.12.1"][:8] / "index.html").read_text()
    assert "<p>2 same</p>" in after


def test_results_of_no_branch_are_refused_by_name(tmp_path):
    """asv would add them to the series of every branch (asv issue 1410); the old pages stay."""
    project = Project(tmp_path / "project")
    project.add_benchmark(RATE, "env-steps/s", params=("only",))
    project.add_result("ale-py-0.12.0", {RATE: [1.0]})
    stray = project.add_result("torch-2.9.1", {RATE: [1.0]})
    project.configure(branches=["ale-py"])
    project.html.mkdir()
    done = project.asv("publish")
    assert done.returncode == 2
    assert "on no branch that asv.conf.json lists (ale-py)" in done.stdout
    assert str(stray.relative_to(project.folder)) in done.stdout
    assert project.html.exists()


def test_thousands_of_possible_combinations_are_not_expanded(tmp_path):
    """Only combinations that were measured are listed (asv issue 438)."""
    project = Project(tmp_path / "project")
    project.add_benchmark(RATE, "env-steps/s", params=("only",))
    for number in range(5):
        variables = {name: f"{name}{number}" for name in ("GAME", "DEVICE", "TORCH_THREADS")}
        project.add_result("ale-py-0.12.0", {RATE: [1.0]}, **variables)
    started = dt.datetime.now(dt.timezone.utc)
    assert project.asv("publish").returncode == 0
    assert dt.datetime.now(dt.timezone.utc) - started < dt.timedelta(seconds=60)
    assert len(project.page("index.json")["graph_param_list"]) == 5
