"""`asv compare` on planted results."""

from __future__ import annotations

import pytest

from planted import CELLS, CPU_RATE, MEMORY, NEW, OLD, RATE, STEP_TIME, TIME, Project, changed, table, windows


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Return a project with every kind of change, for rates, for times, and for what asv measures itself."""
    project = Project(tmp_path_factory.mktemp("planted") / "project")
    values = {RATE: 10_000, STEP_TIME: 100, TIME: 0.00123, MEMORY: 2000}
    kinds = {RATE: ("env-steps/s", "track"), STEP_TIME: ("microseconds/step", "track"), TIME: ("seconds", "time"),
             MEMORY: ("bytes", "peakmemory")}  # fmt: skip
    for name, (unit, kind) in kinds.items():
        project.add_benchmark(name, unit, kind=kind)
    # Exactly equal windows, so that the printed values are the planted ones.
    sides = {name: changed(value, processes=6, spread=0) for name, value in values.items()}
    for number, release in enumerate((OLD, NEW)):
        project.add_result(release, {name: side[number] for name, side in sides.items()})
    return project


HIGHER = {"gain": "-", "loss": "+", "small_gain": "-", "small_loss": "+"}
LOWER = {"gain": "+", "loss": "-", "small_gain": "+", "small_loss": "-"}
SAME = {"same": "", "failed": "", "newly_failed": "!", "mended": "*"}


def marks(rows, name):
    """Return the mark of each cell of a benchmark."""
    return {cell: rows[f"{name}('{cell}')"][0] for cell in CELLS if f"{name}('{cell}')" in rows}


def test_marks_have_the_direction_of_the_unit(planted):
    """Rates and times side by side, with a factor below 5%."""
    done = planted.asv("compare", OLD, NEW, "--factor", "1.04")
    rows = table(done.stdout)
    assert done.returncode == 0
    assert marks(rows, RATE) == HIGHER | SAME
    for name in (STEP_TIME, TIME, MEMORY):
        assert marks(rows, name) == LOWER | SAME
    assert rows[f"{RATE}('loss')"] == ("+", "10000 env-steps/s", "7000 env-steps/s", "0.70")
    assert rows[f"{STEP_TIME}('gain')"] == ("+", "100 microseconds/step", "150 microseconds/step", "1.50")
    assert f"{RATE}('skipped')" not in rows
    assert "n/a on both sides." in done.stdout
    assert rows[f"{RATE}('newly_failed')"] == ("!", "10000 env-steps/s", "failed", "n/a")
    assert "Change: - better, + worse, ! fails now, * failed before." in done.stdout


def test_the_factor_hides_small_changes(planted):
    """asv's default of 1.1 leaves 30% and 50%, which --only-changed shows alone."""
    rows = table(planted.asv("compare", OLD, NEW, "--only-changed").stdout)
    assert marks(rows, RATE) == {"gain": "-", "loss": "+", "newly_failed": "!"}
    assert marks(rows, STEP_TIME) == {"gain": "+", "loss": "-", "newly_failed": "!"}


def test_split_groups(planted):
    """A gain of a rate is with the improved ones, a rise of a time with the worse ones."""
    output = planted.asv("compare", OLD, NEW, "--split").stdout
    _, improved, same, worse = output.split("Benchmarks that have ")
    for text, title, cells in (
        (improved, "improved", {f"{RATE}('gain')", f"{RATE}('mended')", f"{TIME}('loss')"}),
        (same, "stayed the same", {f"{RATE}('same')", f"{RATE}('small_loss')", f"{TIME}('same')"}),
        (worse, "got worse", {f"{RATE}('loss')", f"{RATE}('newly_failed')", f"{TIME}('gain')"}),
    ):
        assert text.startswith(title)
        assert cells <= table(text).keys()


def test_stock_asv_has_rates_the_wrong_way_round(planted):
    """Without the plugin a loss is an improvement."""
    planted.without_plugin()
    try:
        rows = table(planted.asv("compare", OLD, NEW, "--machine", "here").stdout)
    finally:
        planted.configure()
    assert marks(rows, RATE)["loss"] == "-"
    assert marks(rows, RATE)["gain"] == "+"
    assert marks(rows, TIME)["loss"] == "-"


def test_show_writes_units_too(planted):
    """Skipped is n/a, failed is failed, good values are what they were."""
    lines = planted.asv("show", NEW, "--bench", "track_env_steps").stdout.splitlines()
    words = {line.split()[0]: line.split()[1:] for line in lines if line.split()}
    assert words["loss"] == ["7000", "env-steps/s"]
    assert words["skipped"] == ["n/a"]
    assert words["failed"] == ["failed"]


@pytest.fixture
def project(tmp_path):
    """Return a project with one rate, without results."""
    project = Project(tmp_path / "project")
    project.add_benchmark(RATE, "env-steps/s")
    return project


def test_sort_by_ratio_is_by_number(tmp_path):
    """0.90, 2.00, 10.50, undecided and n/a; as text 10.50 would come after 2.00."""
    project = Project(tmp_path / "project")
    project.add_benchmark(RATE, "env-steps/s", params=("down", "double", "tenfold", "none", "unclear"))
    project.add_result(OLD, {RATE: [windows(100, processes=6, spread=0)] * 3 + [float("nan"), windows(100)]})
    after = [windows(value, processes=6, spread=0) for value in (90, 200, 1050)]
    project.add_result(NEW, {RATE: [*after, windows(100), windows(103)]})
    rows = table(project.asv("compare", OLD, NEW, "--sort", "ratio").stdout)
    assert [row[3] for row in rows.values()] == ["10.50", "2.00", "~1.03", "0.90", "n/a"]
    assert list(table(project.asv("compare", OLD, NEW, "--sort", "name").stdout)) == sorted(rows)


def test_undecided_says_why_and_what_to_do(project):
    """One process a side cannot tell 5% from noise."""
    for release, value in ((OLD, 100), (NEW, 95)):
        project.add_result(release, {RATE: [windows(value)] * len(CELLS)})
    done = project.asv("compare", OLD, NEW, "--factor", "1.01")
    assert {row[:1] + row[3:] for row in table(done.stdout).values()} == {("", "~0.95")}
    assert f"~ undecided: {len(CELLS)} of {len(CELLS)}" in done.stdout
    assert "with one process a side only a change beyond" in done.stdout
    assert f"asv continuous {OLD} {NEW} --append-samples -a rounds=N" in done.stdout


def test_results_outside_the_matrix_are_ignored_and_counted(project):
    """Of settings the matrix does not have, and of benchmarks the suite no longer has (asv issue 1394)."""
    project.add_benchmark(CPU_RATE, "env-steps/CPU-s", params=("only",))
    for release in (OLD, NEW):
        project.add_result(release, {RATE: [100.0] * len(CELLS)})
        project.add_result(release, {RATE: [900.0] * len(CELLS)}, GAME="breakout")
        project.add_result(release, {CPU_RATE: [50.0]})
    project.forget_benchmark(CPU_RATE)
    output = project.asv("compare", OLD, NEW).stdout
    assert list(table(output)) == [f"{RATE}('{cell}')" for cell in sorted(CELLS)]
    assert f"Ignored: 1 of {OLD}, since the matrix of asv.conf.json does not have ALE_VELOCITY_GAME=breakout." in output
    assert f"Ignored: 1 of {NEW}, since the suite no longer has the benchmark {CPU_RATE}." in output
    breakout = project.asv("compare", OLD, NEW, ALE_VELOCITY_GAME="breakout").stdout
    assert {row[1] for row in table(breakout).values()} == {"900 env-steps/s"}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"facts": {"cpu": "Another CPU"}}, "different machines under one name: cpu is 'A CPU' for"),
        ({"version": "2"}, "different versions of the benchmarks"),
        ({"DEVICE": "cuda"}, "measured in different environments: stack-py3.11-ALE_VELOCITY_DEVICEcpu"),
        ({"GAME": "breakout"}, "ignored: 1, since the matrix of asv.conf.json does not have ALE_VELOCITY_GAME="),
        ({"machine": "there"}, f"no results for {NEW} (57e592d2) on machine here; it was measured on there"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(project, second, message):
    """No silent ratio."""
    project.add_machine("there")
    project.add_result(OLD, {RATE: [100.0] * len(CELLS)})
    project.add_result(NEW, {RATE: [200.0] * len(CELLS)}, **second)
    done = project.asv("compare", OLD, NEW, "--machine", "here")
    assert done.returncode == 2
    assert message in done.stdout
    assert {row[3] for row in table(done.stdout).values()} <= {"n/a"}


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("here", 0, "Results of this machine, 'here' (another's: --machine NAME)"),
        ("elsewhere", 1, "specify which one to use with the --machine option"),
    ],
)
def test_of_several_machines_this_one_is_meant(project, name, code, message):
    """The results of other machines are committed beside one's own; without one's own asv names them all."""
    project.add_machine("there")
    for release in (OLD, NEW):
        project.add_result(release, {RATE: [100.0] * len(CELLS)})
    done = project.asv("compare", OLD, NEW, ALE_VELOCITY_MACHINE=name)
    assert (done.returncode, len(table(done.stdout))) == (code, 0 if code else len(CELLS))
    assert message in done.stdout


def test_an_environment_option_that_fits_no_result_says_what_it_leaves_out(project):
    """As for results of a node's own torch, read on another machine."""
    for release in (OLD, NEW):
        project.add_result(release, {RATE: [100.0] * len(CELLS)})
    done = project.asv("compare", OLD, NEW, "-E", "preinstalled")
    assert done.returncode == 2
    assert "on machine here; -E leaves out stack-py3.11-ALE_VELOCITY_DEVICEcpu-" in done.stdout


@pytest.fixture
def borders(project):
    """Return the project with two results: the first cell does different work, the second has one fingerprint only."""
    project.add_benchmark(CPU_RATE, "env-steps/CPU-s")
    values = {RATE: [windows(100, processes=6)] * len(CELLS), CPU_RATE: [windows(50, processes=6)] * len(CELLS)}
    slower = {name: [[sample / 2 for sample in cell] for cell in cells] for name, cells in values.items()}
    old, new = (project.add_result(release, sides) for release, sides in ((OLD, values), (NEW, slower)))
    # The two measures of a cell share a run, which is recorded for the first of them.
    project.add_record(old, f"{CPU_RATE}-0", behaviour="1-aaaa")
    project.add_record(new, f"{CPU_RATE}-0", behaviour="1-bbbb")
    project.add_record(new, f"{CPU_RATE}-1", behaviour="1-bbbb")
    return project, old, new


def test_different_work_has_no_ratio(borders):
    """Public case 3: marked, explained below the table, and neither better nor worse; the others are judged."""
    project, _, _ = borders
    output = project.asv("compare", OLD, NEW).stdout
    rows = table(output)
    for name, unit in ((RATE, "env-steps/s"), (CPU_RATE, "env-steps/CPU-s")):
        mark, before, after, ratio = rows[f"{name}('{CELLS[0]}')"]
        assert (mark, ratio) == ("#", "n/a")
        assert before.endswith(unit)
        assert after.endswith(unit)
        assert {rows[f"{name}('{cell}')"][0] for cell in CELLS[1:]} == {"+"}
    assert "# different work." in output
    assert (
        f"different work: 2 of {2 * len(CELLS)}: the same seed and actions gave other observations or rewards "
        "(fingerprints 1-aaaa and 1-bbbb): their rates are not to be compared."
    ) in output
    changed_only = table(project.asv("compare", OLD, NEW, "--only-changed", "--split").stdout)
    assert f"{RATE}('{CELLS[0]}')" in changed_only


def test_nothing_but_different_work_is_refused(borders):
    """As for different versions of the benchmarks; the newest record of a cell counts."""
    project, old, new = borders
    for place in range(len(CELLS)):
        project.add_record(old, f"{RATE}-{place}", behaviour="1-aaaa")
        project.add_record(new, f"{RATE}-{place}", behaviour="1-bbbb")
    done = project.asv("compare", OLD, NEW)
    assert done.returncode == 2
    assert {row[0] for row in table(done.stdout).values()} == {"#"}
    assert f"{OLD} and {NEW} do different work" in done.stdout
    for place in range(len(CELLS)):
        project.add_record(old, f"{RATE}-{place}", behaviour="1-bbbb")
    assert project.asv("compare", OLD, NEW).returncode == 0


def test_nothing_measured_is_not_no_change(project):
    """All skipped on one side."""
    project.add_result(OLD, {RATE: [float("nan")] * len(CELLS)})
    project.add_result(NEW, {RATE: [200.0] * len(CELLS)})
    done = project.asv("compare", OLD, NEW)
    assert done.returncode == 2
    assert "nothing to compare: no benchmark has a value for both" in done.stdout


def test_unknown_releases_list_the_nearest(project):
    """As everywhere in asv's commands on the timeline."""
    done = project.asv("compare", OLD, "ale-py-0.12.7x")
    assert done.returncode == 1
    assert "did you mean ale-py-0.12" in done.stdout
