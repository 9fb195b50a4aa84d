"""`ale-velocity export` through the real command line, on results written by asv's code."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET

import pytest
from pyarrow import parquet

from ale_velocity import cli, selection
from ale_velocity import export as export_module
from results_tree import DQN, EMULATOR, ResultsTree, curve

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """One machine, two releases, two benchmarks; and a second game, measured on the release between."""
    tree = ResultsTree(tmp_path_factory.mktemp("export"))
    tree.add_machine("vm")
    for release, scale in (("ale-py-0.11.2", 1.0), ("ale-py-0.12.1", 1.2)):
        for benchmark in (DQN, EMULATOR):
            tree.add("vm", release, benchmark, curve(scale, counts=(1, 8), processes=6))
    tree.add("vm", "ale-py-0.12.0", DQN, curve(0.5, counts=(1, 8), processes=6), GAME="ms_pacman")
    tree.add("vm", "ale-py-0.12.1", DQN, curve(0.6, counts=(1, 8), processes=6), GAME="ms_pacman")
    return tree


@pytest.fixture
def export(tree, capsys):
    """Run the command on the tree; return exit code, stdout and stderr."""

    def run(*arguments):
        code = cli.main(["export", "--config", str(tree.folder / "asv.conf.json"), *arguments])
        return code, *capsys.readouterr()

    return run


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_row_holds_everything_of_a_cell(export, tree):
    """Identity, interval, and verdict against the release before; and there is no row of what was not asked for."""
    code, text, _ = export("--release", "ale-py-0.12.1", "--agent", "dqn", "--game", "pong")
    measured = rows(text)
    assert {"measured"} == {row["status"] for row in measured}
    assert (code, [(row["loop"], row["num_envs"]) for row in measured]) == (
        0,
        [("step", "1"), ("step", "8"), ("send_recv", "1"), ("send_recv", "8")],
    )
    assert {
        key: measured[0][key] for key in ("machine", "protocol", "game", "unit", "verdict", "before", "commit")
    } == {
        "machine": "vm",
        "protocol": "standard",
        "game": "pong",
        "unit": "env-steps/s",
        "verdict": "faster",
        "before": "ale-py-0.11.2",
        "commit": tree.hashes["ale-py-0.12.1"],
    }
    assert float(measured[0]["ratio"]) == pytest.approx(1.2, abs=0.01)


@pytest.mark.parametrize("counts", [(8, 1, 64), (1, 64, 8)])
def test_rows_have_the_order_of_the_benchmarks_parameters(tmp_path, capsys, counts):
    """Whatever was measured first, on however many releases."""
    tree = ResultsTree(tmp_path)
    tree.add_machine("vm")
    for release, part in (("ale-py-0.11.2", counts[:1]), ("ale-py-0.12.0", counts[1:]), ("ale-py-0.12.1", counts)):
        tree.add("vm", release, DQN, curve(1.0, counts=part))
    assert cli.main(["export", "--config", str(tmp_path / "asv.conf.json"), "--release", "ale-py-0.12.1"]) == 0
    measured = [(row["loop"], row["num_envs"]) for row in rows(capsys.readouterr().out)]
    assert measured == [(loop, count) for loop in ("step", "send_recv") for count in ("1", "8", "64")]


def test_another_game_is_another_history(export):
    """Its verdict is against its own release before, which of the first game was not measured."""
    _, text, _ = export("--release", "ale-py-0.12.1", "--game", "ms_pacman")
    (first, *_) = [row for row in rows(text) if row["status"] == "measured"]
    assert (first["game"], first["before"], first["verdict"]) == ("ms_pacman", "ale-py-0.12.0", "faster")
    assert float(first["ratio"]) == pytest.approx(1.2, abs=0.01)


def test_all_formats_hold_the_same_numbers(export, tmp_path):
    """csv, json, parquet and markdown."""
    _, text, _ = export()
    means = [float(row["mean"]) for row in rows(text) if row["mean"]]
    _, text, _ = export("--format", "json")
    assert [row["mean"] for row in json.loads(text) if row["mean"]] == means
    assert export("--format", "parquet", "--output", str(tmp_path / "cells.parquet"))[0] == 0
    assert [mean for mean in parquet.read_table(tmp_path / "cells.parquet")["mean"].to_pylist() if mean] == means
    _, text, _ = export("--format", "markdown")
    cells = [line.split(" | ")[6] for line in text.splitlines()[2:]]
    assert [cell for cell in cells if cell.strip()] == [f"{mean:,.0f}" for mean in means]


def test_chart_constants_need_one_selection(export):
    """One release, benchmark and setup; the message names the options that still leave a choice, and what there is."""
    options = ["--format", "js", "--benchmark", "DqnTraining"]
    code, _, message = export(*options)
    assert (code, "--release: ale-py-0.11.2, ale-py-0.12.0, ale-py-0.12.1; --game: ms_pacman, pong\n" in message) == (
        2,
        True,
    )
    options += ["--release", "ale-py-0.12.1"]
    code, _, message = export(*options)
    assert (code, message.partition("choose by ")[2]) == (2, "--game: ms_pacman, pong\n")
    code, text, _ = export(*options, "--game", "pong")
    assert code == 0
    assert [line for line in text.splitlines() if line.startswith("const")] == [
        "const stepRaw = [",
        "const recvRaw = [",
    ]
    assert text.count("{ n: 8, thr: ") == 2


def test_the_figure_has_a_line_a_loop(export, tmp_path):
    """Well-formed SVG with the title, a band and a line for each loop, and points that rise with the rate."""
    code, _, message = export(
        "--format",
        "svg",
        "--release",
        "ale-py-0.12.1",
        "--agent",
        "dqn",
        "--game",
        "pong",
        "--output",
        str(tmp_path / "figure.svg"),
    )
    assert (code, message) == (0, "")
    root = ET.parse(tmp_path / "figure.svg").getroot()  # noqa: S314 (ours)
    texts = [text.text for text in root.iter(SVG + "text")]
    assert texts[0] == "DQN training, ale-py-0.12.1, vm: env-steps/s (higher is better)"
    assert {"step", "send_recv", "1", "8", "number of envs"} <= set(texts)
    lines = list(root.iter(SVG + "polyline"))
    limit, step, send_recv = ([float(pair.split(",")[1]) for pair in line.get("points").split()] for line in lines)
    assert step[0] > step[1] > send_recv[1]  # pixels count from the top
    assert len(list(root.iter(SVG + "polygon"))) == 2
    # The emulator's faster loop, of this release and game, and the one dashed line.
    assert limit == send_recv
    assert [bool(line.get("stroke-dasharray")) for line in lines] == [True, False, False]
    assert "limit: emulator" in texts


def test_the_emulator_has_no_limit_beside_itself(export):
    """It is the limit."""
    code, text, _ = export("--format", "svg", "--release", "ale-py-0.12.1", "--agent", "emulator")
    assert (code, text.count("<polyline"), text.count("dasharray")) == (0, 2, 0)


def test_a_protocol_is_a_choice(tmp_path, capsys):
    """Results of two protocols are two charts."""
    tree = ResultsTree(tmp_path)
    tree.add_machine("vm")
    for protocol in ("standard", "reference"):
        tree.add("vm", "ale-py-0.12.1", DQN, curve(1.0, counts=(1, 8)), PROTOCOL=protocol)
    command = ["export", "--config", str(tmp_path / "asv.conf.json"), "--format", "js"]
    assert (cli.main(command), capsys.readouterr().err.partition("choose by ")[2]) == (
        2,
        "--protocol: reference, standard\n",
    )
    assert [cli.main([*command, "--protocol", name]) for name in ("reference", "standard")] == [0, 0]


@pytest.mark.parametrize("option", [selection.option(name) for name in selection.SELECTABLE])
def test_what_is_not_there_is_named(export, option):
    """With what there is instead."""
    code, _, message = export(option, "nothing")
    assert (code, f"no results for {option} nothing: there are results for " in message) == (2, True)


def test_a_folder_without_results_is_an_error(tmp_path, capsys):
    """One message, no traceback."""
    assert cli.main(["export", "--config", str(tmp_path / "asv.conf.json")]) == 2
    assert "is no file: run this in the repository" in capsys.readouterr().err


def test_a_baseline_is_named_where_loops_are():
    """Its benchmark has baselines for loops."""
    row = {"benchmark": "baselines.Baselines.track_env_steps_per_second", "baseline": "gymnasium_sync", "mean": 1910.0}
    *_, line = export_module._markdown([row]).decode().splitlines()
    assert line == "|  |  |  | Baselines | gymnasium_sync |  | 1,910 |  |  |  |"
