"""The planted work is per received row, and a find must last."""

import pytest

import plant_slowdown
from ale_velocity import backends, stats


class FakeEnv:
    """Two envs that return what they were asked to do."""

    num_envs = 2

    def step(self, actions):
        """Return five parts, with two rewards."""
        return actions, [0.0, 0.0], None, None, {}

    def recv(self):
        """Return five parts, with one reward."""
        return "received", [0.0], None, None, {}


@pytest.fixture
def burnt(monkeypatch):
    """The amounts of work that were done."""
    amounts = []
    monkeypatch.setattr(plant_slowdown, "burn", amounts.append)
    return amounts


def test_work_is_done_for_each_received_row(burnt):
    """`step` and `recv` give what the env gives, after work for each of its rows; the rest is the env's own."""
    env = plant_slowdown.PlantedEnv(FakeEnv(), 10.0)

    assert env.step("actions")[0] == "actions"
    assert env.recv()[0] == "received"
    assert burnt == [20.0, 10.0]
    assert env.num_envs == 2


def test_more_iterations_are_more_cpu_time():
    """The calibrated rate turns CPU seconds into iterations."""
    assert plant_slowdown.iterations_per_second() > 1e6


def test_a_find_must_last():
    """Found with the number of pairs from which on every larger duel agrees."""
    before = [1000.0, 1003.0, 998.0, 1001.0, 1000.0, 1002.0]
    slower = [0.95 * value for value in (1001.0, 1000.0, 1000.0, 1001.0, 999.0, 1002.0)]

    assert stats.compare_pairs(before[:3], slower[:3]).change == "less"
    assert plant_slowdown.found_with(before, slower) == 3
    assert plant_slowdown.found_with(before, [*slower[:5], 1200.0]) is None


def test_the_worker_plants_where_cells_open_their_envs(monkeypatch):
    """The process of a planted cell gets the wrapped env from the very place that `ale_velocity.cell` opens it."""
    monkeypatch.setitem(backends.BACKENDS, "ale", lambda *_: FakeEnv())
    opened = []
    monkeypatch.setattr(plant_slowdown.cells, "main", lambda: opened.append(backends.BACKENDS["ale"]("pong", 2, 2, 2)))
    plant_slowdown.work(10.0)

    assert [type(env) for env in opened] == [plant_slowdown.PlantedEnv]
