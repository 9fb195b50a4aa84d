"""One run of a cell serves both measures, and nothing else."""

from dataclasses import replace

import pytest

from ale_velocity.cell import Cell
from ale_velocity.measure import PROTOCOLS
from ale_velocity.shared_run import run_once

CELL = Cell("emulator", "step", 8, PROTOCOLS["quick"])


class Runs:
    """Counts runs; the result is the count."""

    def __init__(self):
        self.count = 0

    def __call__(self):
        """Run."""
        self.count += 1
        return {"run": self.count}


@pytest.fixture
def asv(tmp_path):
    """What asv and our environment tell a benchmark's process."""
    return {"ASV_ENV_DIR": str(tmp_path), "ASV_COMMIT": "a" * 40, "ALE_VELOCITY_COMMAND": "1"}


def test_the_sibling_takes_the_run_once(asv):
    """Each round runs once for both measures, whichever comes first."""
    run = Runs()
    order = ("cpu", "wall", "cpu", "wall")

    assert [run_once(CELL, measure, run, asv)["run"] for measure in order] == [1, 1, 2, 2]


def test_one_measure_alone_is_never_stale(asv):
    """A measure does not take its own earlier result."""
    run = Runs()

    assert [run_once(CELL, "wall", run, asv)["run"] for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("other", [{"ASV_COMMIT": "b" * 40}, {"ALE_VELOCITY_COMMAND": "2"}])
def test_other_commits_and_commands_run_themselves(asv, other):
    """What was left belongs to one commit of one command."""
    run = Runs()
    run_once(CELL, "cpu", run, asv)

    assert run_once(CELL, "wall", run, {**asv, **other}) == {"run": 2}


def test_other_cells_run_themselves(asv):
    """What was left belongs to one cell."""
    run = Runs()
    run_once(CELL, "cpu", run, asv)

    assert run_once(replace(CELL, num_envs=1), "wall", run, asv) == {"run": 2}


def test_a_new_command_clears_what_an_old_one_left(asv, tmp_path):
    """Files of commands that ran one measure only do not pile up."""
    run_once(CELL, "cpu", Runs(), asv)
    run_once(CELL, "cpu", Runs(), {**asv, "ALE_VELOCITY_COMMAND": "2"})

    assert [folder.name for folder in (tmp_path / "shared").iterdir()] == ["2"]


def test_outside_asv_nothing_is_shared(tmp_path):
    """Without asv's variables each call runs."""
    run = Runs()

    assert [run_once(CELL, measure, run, {})["run"] for measure in ("cpu", "wall")] == [1, 2]
    assert list(tmp_path.iterdir()) == []
