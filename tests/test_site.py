"""The published site in a real browser: every page draws, from our host only, and shows what the results hold."""

from __future__ import annotations

import base64
import csv
import datetime as dt
import hashlib
import io
import math
import re
import shutil
import statistics
import time

import pytest

from ale_velocity.site import assets
from ale_velocity.stats import mean_interval
from browser import Browser
from results_tree import DQN, EMULATOR, MEASURED_AT, ResultsTree, curve, windows

LEARNER = "learner.LearnerOnly.track_env_steps_per_second"
STRANGE = "<script>hacked=1<script>"  # no slash: it is a folder's name
PAGES = ["index.html#/", "index.html#/summarylist", "index.html#/regressions", "overview.html", "throughput.html"]
PLANTED = {"0.11.0": 1.0, "0.11.1": 1.0, "0.11.2": 1.2, "0.12.0": 1.2, "0.12.1": 1.0}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Results with a gain of 20% in ale-py 0.11.2 and its loss in 0.12.1, and with everything that can be odd."""
    tree = ResultsTree(tmp_path_factory.mktemp("site"))
    tree.add_benchmark(LEARNER, loops=("step",))
    tree.add_machine("vm")
    tree.add_machine(STRANGE, cpu='<img src=x onerror="hacked=1">')
    tree.add_machine("single")
    for version, scale in PLANTED.items():
        cells = curve(scale, processes=6)
        if version == "0.12.0":
            cells["step", 256] = math.nan  # n/a
            cells["send_recv", 256] = None  # failed
        tree.add("vm", f"ale-py-{version}", DQN, cells)
        tree.add("vm", f"ale-py-{version}", EMULATOR, curve(2 * scale, processes=6))
    tree.add("vm", "ale-py-0.12.1", LEARNER, {("step", count): windows(3000.0 + count) for count in (1, 8)})
    tree.add("vm", "ale-py-0.10.2", DQN, dict.fromkeys(curve(1), math.nan))
    for version in ("2.9.1", "2.10.0", "2.11.0"):
        tree.add("vm", f"torch-{version}", DQN, curve(1))
    environment = tree.add(STRANGE, "ale-py-0.12.1", DQN, curve(1.5), GAME="pong<b>")
    assert "pong<b>" in environment
    tree.add("single", "ale-py-0.12.1", DQN, {("step", 8): windows(7000.0, reps=2)}, PROTOCOL="quick")
    pairs = ((1000.0, 1205.0), (1000.0, 1195.0), (1000.0, 1200.0), (1000.0, 1200.0))
    tree.add_duel("vm", "ale-py-0.11.0", "ale-py-0.11.1", *pairs, behaviours=("1-a", "1-b"))
    tree.add_duel("vm", "ale-py-0.11.1", "ale-py-0.11.2", *pairs)
    tree.add_duel("vm", "ale-py-0.11.2", "ale-py-0.11.2", *pairs)  # of the machine, shown nowhere
    last = f"{DQN}-17"  # send_recv, the last of its 9 counts
    tree.record("vm", "ale-py-0.12.0", environment.replace("pong<b>", "pong"), last, "VelocityError: <b>no memory</b>")
    with (tree.results / "vm" / "cells.jsonl").open("a") as file:
        file.write('{"half')
    return tree


@pytest.fixture(scope="module")
def html(tree):
    """The published folder; what git tracks in it was there before."""
    folder = tree.folder / "html"
    folder.mkdir()
    (folder / "README.md").write_text("kept")
    done = tree.asv("publish")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def browser(html):
    """One browser for all tests: starting it takes a second."""
    browser = Browser(html)
    browser.view(1280, "light")
    yield browser
    browser.close()


def number(text):
    return float(text.replace(",", ""))


def test_publish_keeps_what_git_tracks(html):
    """Asv empties the folder, the tracked README survives."""
    assert (html / "README.md").read_text() == "kept"


@pytest.mark.parametrize("page", [*PAGES, "release", f"index.html#{DQN}?x-axis=num_envs"])
def test_every_page_draws_without_other_hosts(browser, tree, page):
    """No page asks another host for anything, none reports an error, none runs what is in a name."""
    if page == "release":
        page = f"release/{tree.hashes['ale-py-0.12.0'][:8]}/"
    browser.get(page)
    browser.until("return document.body.innerText.length > 100")
    time.sleep(0.3)  # asv's pages fetch what they show after loading
    assert browser.errors() == []
    addresses = [address for address, _ in browser.requests()]
    assert [address for address in addresses if not address.startswith((browser.root, "data:", "blob:"))] == []
    assert browser.driver.execute_script("return window.hacked") is None


def test_the_navigation_links_the_pages(browser):
    """From asv's pages to ours and back."""
    browser.get("index.html")
    browser.until("return document.querySelectorAll('.benchmark-text').length")
    browser.driver.find_element("link text", "Throughput").click()
    browser.settle()
    browser.driver.find_element("link text", "Overview").click()
    browser.driver.find_element("link text", "Benchmark list").click()
    browser.until("return document.querySelectorAll('#summarylist-body td').length")


def test_the_throughput_chart_shows_the_stored_numbers(browser):
    """Means and intervals over processes; the emulator's fastest loop and the learner as dashed ceilings."""
    browser.get("throughput.html#machine=vm&release=0.12.1&series=ale-py")
    traces = {trace["name"]: trace for trace in browser.charts()["throughput"] if trace.get("name")}
    assert list(traces) == ["step", "send_recv", "Emulator only (ceiling)", "Learner only (ceiling)"]
    assert [trace["line"].get("dash") for trace in traces.values()] == [None, None, "dash", "dot"]
    emulator = curve(2.0, processes=6)
    ceiling = traces["Emulator only (ceiling)"]
    assert ceiling["y"] == [pytest.approx(statistics.fmean(emulator["send_recv", n]), rel=1e-4) for n in ceiling["x"]]
    cells = curve(1.0, processes=6)
    for row in browser.table("#throughput table")[1:]:
        loop, count, mean, half_width, frames = row[0], int(row[1]), *map(number, row[2:5])
        samples = cells[loop, count]
        means = [statistics.fmean(samples[start : start + 5]) for start in range(0, len(samples), 5)]
        expected = mean_interval(means)
        assert (mean, frames) == (pytest.approx(expected.mean, abs=0.51), pytest.approx(5 * expected.mean, abs=2.6))
        assert half_width == pytest.approx(expected.half_width, rel=0.01, abs=0.51)
        assert number(row[5]) == pytest.approx(statistics.median(samples), abs=0.51)


def test_the_speedup_is_the_ratio_of_the_means(browser):
    """A row for each count, its ratio within its interval."""
    browser.get("throughput.html#machine=vm&release=0.12.1&series=ale-py")
    rows = browser.table("#speedup table")[1:]
    cells = curve(1.0, processes=6)
    for loop, count, *texts in rows:
        ratio, low, high = map(float, texts)
        expected = statistics.fmean(cells[loop, int(count)]) / statistics.fmean(cells["step", int(count)])
        assert (ratio, low < ratio < high) == (pytest.approx(expected, abs=2e-4), True)
    assert [row[1] for row in rows] == ["1", "2", "4", "8", "16", "32", "64", "128", "256"]


def test_a_gain_and_a_loss_have_their_colours(browser):
    """The planted gain points up in the colour of gains, the planted loss down in that of losses, here and in lists."""
    browser.get("throughput.html#machine=vm&series=ale-py&envs=16")
    style = "return getComputedStyle(document.documentElement).getPropertyValue('--{}').trim()"
    gain, loss = (browser.driver.execute_script(style.format(name)) for name in ("gain", "loss"))
    (marks,) = [trace for trace in browser.charts()["trend"] if "faster" in trace["name"]]
    assert [*zip(marks["x"], marks["marker"]["symbol"], marks["marker"]["color"], strict=True)] == [
        (position, shape, colour)
        for _loop in ("step", "send_recv")
        for position, shape, colour in ((7, "triangle-up", gain), (9, "triangle-down", loss))
    ]
    steps = browser.table("#trend .steps table")
    assert [row[1:4] for row in steps[1:3]] == [["step", "0.11.1", "0.11.2"], ["step", "0.12.0", "0.12.1"]]
    assert [row[0].split()[0] for row in steps[1:3]] == ["faster", "slower"]
    trend = browser.table("#trend table:not(.steps *)")
    assert [row[0] for row in trend[2:7]] == list(PLANTED)
    chosen = "machine=vm&env-ALE_VELOCITY_GAME=pong&env-ALE_VELOCITY_PROTOCOL=standard&branch=ale-py"
    browser.get(f"index.html#/summarylist?{chosen}")
    browser.until("return document.querySelectorAll('#summarylist-body td').length")
    colours = """return [...document.querySelectorAll('#summarylist-body td.change')].filter(
        cell => cell.textContent).map(cell => getComputedStyle(cell).backgroundColor)"""
    assert set(browser.driver.execute_script(colours)) == {"rgb(255, 221, 221)"}  # asv's red: the last change is a loss
    browser.get("overview.html")
    for heading, word in (("Losses", "slower"), ("Gains", "faster")):
        first = browser.driver.find_element("xpath", f"//h2[text()='{heading}']/following::tbody[1]//span")
        assert word in first.text
        assert first.get_attribute("class") == f"verdict {word}"
    together = "//h2[text()='Gains and losses of all cells together']/following::tbody[1]/tr"
    rows = [row.text for row in browser.driver.find_elements("xpath", together)]
    assert any("faster" in row and "ale-py-0.11.1 → ale-py-0.11.2" in row for row in rows)
    assert any("slower" in row and "ale-py-0.12.0 → ale-py-0.12.1" in row for row in rows)


def test_duels_are_on_the_pages_of_their_releases(browser, tree):
    """Verdicts found are on the overview, with their interval; a release's page has all that was compared."""
    browser.get("overview.html")
    duels = "//h2[text()='{}']/following::tbody[1]/tr"
    rows = browser.driver.find_elements("xpath", duels.format("Gains and losses by duels"))
    texts = [" ".join(row.text.split()) for row in rows]
    found = "▲ faster +20.0% (+19.4% to +20.7%) ale-py-0.11.1 → ale-py-0.11.2 emulator step n=8, env-steps/"
    assert sorted(texts) == [f"{found}{unit} 4 vm, pong, quick" for unit in ("CPU-s", "s")]
    assert "2 of 4 comparisons found one" in browser.driver.find_element("css selector", "main").text
    for version, word in (("0.11.2", "faster"), ("0.11.1", "different work")):
        browser.get(f"release/{tree.hashes[f'ale-py-{version}'][:8]}/index.html")
        rows = browser.driver.find_elements("xpath", duels.format("Duels"))
        assert [word in row.text for row in rows] == [True, True]
    browser.get(f"release/{tree.hashes['ale-py-0.12.0'][:8]}/index.html")
    assert browser.driver.find_elements("xpath", "//h2[text()='Duels']") == []


def test_pickers_offer_what_exists_in_natural_order_and_survive_a_reload(browser):
    """2.9.1 comes before 2.10.0; a choice is in the address, and the address restores it."""
    browser.get("throughput.html#machine=vm&series=torch")
    assert browser.options("release") == ["2.11.0", "2.10.0", "2.9.1"]
    ticks = browser.driver.execute_script("return document.querySelector('#trend .chart').layout.xaxis.ticktext")
    assert [tick.split("<br>")[0] for tick in ticks][3:6] == ["2.9.1", "2.10.0", "2.11.0"]
    assert ticks[3].endswith("2025-11-12")
    browser.pick("release", "2.9.1")
    browser.pick("envs", "128")
    browser.driver.refresh()
    browser.settle()
    chosen = browser.driver.execute_script(
        "return ['series', 'release', 'envs'].map(name => document.getElementsByName(name)[0].value)"
    )
    assert chosen == ["torch", "2.9.1", "128"]
    assert "2.9.1" in browser.driver.find_element("css selector", "#throughput .caption").text


def test_only_combinations_that_exist_are_offered(browser):
    """One machine ran the quick protocol only, and one cell of it: that is what it offers, and draws."""
    browser.get("throughput.html#machine=single")
    assert browser.options("protocol") == ["quick"]
    (row,) = browser.table("#throughput table")[1:]
    assert row[:2] == ["step", "8"]
    assert number(row[2]) == pytest.approx(statistics.fmean(windows(7000.0, reps=2)), abs=0.51)
    assert browser.driver.find_element("css selector", "#speedup .missing").text.startswith("Needs step and another")


def test_what_was_not_measured_is_said(browser, tree):
    """On the chart's page in words, on the release's page with the stored error, which is not run as HTML."""
    browser.get("throughput.html#machine=vm&series=ale-py&release=0.12.0")
    missing = browser.driver.find_element("css selector", "#throughput .missing").text
    assert missing == "n/a: step 256. failed: send_recv 256"
    browser.get("throughput.html#machine=vm&series=ale-py&release=0.10.2")
    assert browser.driver.find_element("css selector", "#throughput .missing").text.startswith("n/a: step 1, 2, 4, 8")
    browser.get(f"release/{tree.hashes['ale-py-0.12.0'][:8]}/")
    (row,) = [row for row in browser.table("table") if row[1:2] == ["✕ failed"]]
    assert (row[0], row[-1]) == ("DQN training: send_recv, 256 envs", "VelocityError: <b>no memory</b>")
    assert "was ale-py==0.11.2" in browser.driver.find_element("css selector", "main").text


def test_strange_names_are_only_names(browser):
    """A machine and a game whose names are HTML are offered and drawn as they are."""
    browser.get("throughput.html")
    browser.pick("game", "pong<b>")
    assert browser.options("machine") == [STRANGE]
    assert browser.errors() == []
    assert browser.driver.execute_script("return window.hacked") is None


def test_constants_and_csv_are_those_of_the_command(browser, tree):
    """The page's button and `ale-velocity export` give the same numbers."""
    browser.get("throughput.html#machine=vm&series=ale-py&release=0.11.2")
    browser.driver.find_element("css selector", "[data-action=constants]").click()
    browser.until("return document.querySelector('textarea.constants').value")
    copied = browser.driver.find_element("css selector", "textarea.constants").get_attribute("value")
    selection = ["--machine", "vm", "--release", "ale-py-0.11.2", "--agent", "dqn"]
    assert copied + "\n" == tree.velocity("export", "--format", "js", *selection).stdout

    browser.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(browser.downloads)}
    )
    browser.driver.find_element("css selector", "#throughput [data-action=csv]").click()
    browser.driver.find_element("css selector", "#throughput [data-action=png]").click()
    kinds = wait_for_downloads(browser.downloads, 2)
    assert kinds[".png"].read_bytes().startswith(b"\x89PNG")
    page = list(csv.DictReader(io.StringIO(kinds[".csv"].read_text())))
    command = list(csv.DictReader(io.StringIO(tree.velocity("export", *selection).stdout)))
    assert [float(row["env-steps/s"]) for row in page] == [float(row["mean"]) for row in command]
    assert [float(row["±"]) for row in page] == [float(row["half_width"]) for row in command]


def wait_for_downloads(folder, count):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        files = [path for path in folder.glob("*") if path.suffix in {".csv", ".png"}]
        if len(files) == count:
            return {path.suffix: path for path in files}
        time.sleep(0.05)
    raise AssertionError(f"no {count} downloads in {folder}: {list(folder.glob('*'))}")


def test_asv_lists_are_in_natural_order_with_direction(browser):
    """8 envs before 16, torch 2.10 after 2.9; values and axes say which way is better, without exponents."""
    chosen = "machine=vm&env-ALE_VELOCITY_GAME=pong&env-ALE_VELOCITY_PROTOCOL=standard"
    browser.get(f"index.html#/summarylist?branch=ale-py&{chosen}")
    browser.until("return document.querySelectorAll('#summarylist-body td').length")
    rows = [row for row in browser.table("#summarylist-body table") if "DqnTraining" in row[0]]
    counts = [int(row[0].rpartition(",")[2].strip(" )")) for row in rows]
    assert counts == [1, 2, 4, 8, 16, 32, 64, 128, 256] * 2
    assert re.fullmatch(r"8,\d{3} env-steps/s \(higher is better\)", rows[4][1])
    browser.get(f"index.html#{DQN}?x-axis=num_envs&{chosen}")
    browser.until("return document.querySelector('#main-graph canvas')")
    axis = "return $('#main-graph').data('plot').getAxes().yaxis.options"
    assert browser.driver.execute_script(f"{axis}.axisLabel") == "env-steps/s (higher is better)"
    browser.driver.find_element("id", "log-scale").click()
    browser.until(f"{axis}.transform ? 1 : 0")
    assert browser.driver.execute_script(f"{axis}.axisLabel") == "env-steps/s (higher is better)"


def test_old_results_are_warned_of_when_the_page_is_read(browser):
    """The limit counts from today, not from the day of publishing."""
    browser.get("overview.html")
    time_element = browser.driver.find_element("css selector", "time")
    assert time_element.get_attribute("datetime") == MEASURED_AT.isoformat(timespec="seconds")
    later = "const real = Date.now; Date.now = () => new Date('2027-06-01').getTime()"
    script = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": later})
    browser.get("overview.html")
    warning = browser.driver.find_element("css selector", ".warning").text
    browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    assert warning == "The newest result is 211 days old: newer releases may be missing."


def test_our_pages_open_from_a_file_share(browser, html):
    """Without any server, where a page may load scripts but read no files."""
    browser.get("overview.html")
    browser.driver.get((html / "overview.html").as_uri())
    browser.driver.find_element("link text", "Throughput").click()
    browser.settle()
    assert len(browser.charts()["throughput"]) > 0
    browser.driver.find_element("css selector", "#trend .steps a").click()
    assert browser.driver.title == "ale-py-0.11.1 · ale-velocity"
    assert browser.errors() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(browser, tree, scheme):
    """At 390 pixels all of our pages fit, and the charts with them; dark pages have dark charts."""
    browser.view(390, scheme)
    try:
        for page in ("overview.html", "throughput.html", f"release/{tree.hashes['ale-py-0.12.1'][:8]}/index.html"):
            browser.get(page)
            assert browser.driver.execute_script("return document.documentElement.scrollWidth") == 390
            background = browser.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]
            if page == "throughput.html":
                paper = "return document.querySelector('.chart').layout.paper_bgcolor"
                assert browser.driver.execute_script(paper) == {"light": "#ffffff", "dark": "#14171b"}[scheme]
    finally:
        browser.view(1280, "light")


def test_a_long_option_widens_no_picker(browser):
    """Names of benchmarks are long; the next picker must stay in sight."""
    browser.get("throughput.html")
    script = """
      const picker = document.querySelector("#pickers select");
      picker.append(new Option("Emulator only, env steps per cpu second, and more"));
      return [picker.offsetWidth, picker.parentElement.clientWidth];
    """
    width, room = browser.driver.execute_script(script)
    assert 0 < width <= room


def test_the_keyboard_reaches_and_moves_the_pickers(browser):
    """Arrow keys change a picker, which keeps the focus although the charts are drawn anew."""
    browser.get("throughput.html#machine=vm&series=torch")
    picker = browser.driver.find_element("name", "release")
    picker.send_keys("\ue015")  # arrow down
    browser.settle()
    browser.until("return document.activeElement.name === 'release' && document.activeElement.value === '2.10.0'")


def test_the_first_view_is_small(browser):
    """Under 3 MB over the wire, without any compression by the server."""
    browser.driver.execute_cdp_cmd("Network.enable", {})
    browser.driver.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
    browser.get("throughput.html")
    time.sleep(0.3)
    received = sum(size for _, size in browser.requests())
    browser.driver.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": False})
    assert 1e6 < received < 3e6  # the chart library alone is 1.2 MB


def test_a_site_without_results_says_so(tree, tmp_path):
    """A benchmark list and a machine, nothing measured yet; and a duel of what is no release, which is refused."""
    empty = ResultsTree(tmp_path)
    empty.add_machine("vm")
    shutil.copytree(tree.folder / ".asv" / "npm", tmp_path / ".asv" / "npm")
    duel = empty.add_duel("vm", "ale-py-0.11.2", "ale-py-0.12.0", (1.0, 1.0))
    duel.write_text(duel.read_text().replace("ale-py==0.12.0", "ale-py==0.12.0.dev1"))
    refused = empty.asv("publish")
    assert refused.returncode == 1
    assert "the timeline has no ale-py-0.12.0 of ale-py==0.12.0.dev1" in " ".join(
        (refused.stdout + refused.stderr).split()
    )
    duel.unlink()
    assert empty.asv("publish").returncode == 0
    browser = Browser(tmp_path / "html")
    try:
        for page in ("throughput.html", "overview.html"):
            browser.get(page)
            assert "There are no results yet" in browser.driver.find_element("css selector", "main").text
            assert browser.errors() == []
    finally:
        browser.close()


def test_publish_warns_of_old_results(tree, tmp_path):
    """And of stored results that belong to no release or to another version of their benchmark."""
    old = ResultsTree(tmp_path)
    old.add_machine("vm")
    old.add("vm", "ale-py-0.11.2", DQN, curve(1), measured_at=dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc))
    old.benchmarks[EMULATOR]["version"] = "another"
    old.add("vm", "ale-py-0.11.2", EMULATOR, curve(1))
    old.add_benchmark(EMULATOR)
    shutil.copytree(tree.folder / ".asv" / "npm", tmp_path / ".asv" / "npm")
    done = old.asv("publish")
    printed = " ".join((done.stdout + done.stderr).split())
    assert (done.returncode, "days old: newer releases may be missing" in printed) == (0, True)
    assert f"not shown: 1 stored result of {EMULATOR}, measured by another version of it" in printed


def test_without_npm_publish_says_so_and_links_public_copies(tree, html, tmp_path):
    """Asv's own links stay, ours has the hash of the very file that npm brings."""
    (tmp_path / "git").symlink_to("/usr/bin/git")
    shutil.move(tree.folder / ".asv" / "npm", tmp_path / "npm")
    done = tree.asv("publish", "--html-dir", str(tmp_path / "html"), PATH=str(tmp_path))
    shutil.move(tmp_path / "npm", tree.folder / ".asv" / "npm")
    assert (done.returncode, "npm is not installed" in done.stdout + done.stderr) == (0, True)
    assert "https://code.jquery.com/" in (tmp_path / "html" / "index.html").read_text()
    (link,) = re.findall(r'integrity="sha384-([^"]+)"', (tmp_path / "html" / "throughput.html").read_text())
    served = (html / assets.PLOTLY.address).read_bytes()
    assert link == base64.b64encode(hashlib.sha384(served).digest()).decode()


def test_licences_come_with_the_scripts(html):
    """Every package says whose it is."""
    for package in (html / "vendor").iterdir():
        texts = [path.read_text() for path in package.iterdir() if path.name in assets.LICENCE_FILES]
        assert any("MIT" in text or "Permission is hereby granted" in text for text in texts), package
