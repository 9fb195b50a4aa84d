"""Which steps of a series are losses."""

from __future__ import annotations

import pytest

from ale_velocity.asv_plugin.regressions import Loss, losses


def steps(*values):
    """Return levels of one release each, at revisions 0, 10, 20 and so on."""
    return [(10 * number, 10 * number + 1, value, value, 0.0) for number, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "higher", "expected"),
    [
        ((10000, 15000), True, []),
        ((10000, 6700), True, [(0, 10, 10000, 6700, None)]),
        ((10000, 15000), False, [(0, 10, 10000, 15000, None)]),
        ((10000, 6700), False, []),
        ((10, 20, 15), False, [(0, 10, 10, 20, None)]),
        ((10, 20, 10), False, [(0, 10, 10, 20, 20)]),
        ((20, 10, 15, 20), True, [(0, 10, 20, 10, 30)]),
        ((100, 50, 25), True, [(0, 10, 100, 50, None), (10, 20, 50, 25, None)]),
        ((100, 95), True, []),  # not more than 5%
        ((100, 97, 94, 91), True, [(0, 20, 100, 94, None)]),  # small steps add up
        ((100, 120, 100), True, [(10, 20, 120, 100, None)]),  # from the gain on
        ((100,), True, []),
        ((), True, []),
    ],
)
def test_losses(values, higher, expected):
    """By direction, also where a later release recovered, between the releases where it happened."""
    assert losses(steps(*values), 0.05, higher=higher) == tuple(Loss(*loss) for loss in expected)


@pytest.mark.parametrize(
    ("values", "borders", "expected"),
    [
        ((100, 50, 25), (), [(0, 10, 100, 50, None), (10, 20, 50, 25, None)]),
        ((100, 50, 25), (10,), [(10, 20, 50, 25, None)]),
        ((100, 50, 25), (10, 20), []),
        ((100, 50, 25), (0, 30), [(0, 10, 100, 50, None), (10, 20, 50, 25, None)]),
        ((100, 50, 100), (20,), [(0, 10, 100, 50, None)]),  # no recovery by other work
        ((100, 97, 94), (10,), []),  # what adds up is of one work
    ],
)
def test_no_loss_goes_across_a_border_of_work(values, borders, expected):
    """Levels of different work are not compared."""
    assert losses(steps(*values), 0.05, higher=True, borders=borders) == tuple(Loss(*loss) for loss in expected)


def test_a_border_within_a_level_changes_nothing():
    """Two releases of different work and one rate, then a loss."""
    levels = [(0, 11, 100, 100, 0.0), (20, 21, 50, 50, 0.0)]
    assert losses(levels, 0.05, higher=True, borders=[10]) == (Loss(10, 20, 100, 50, None),)


def test_the_change_is_of_the_value_before():
    """10000 to 6700 is -33%."""
    (loss,) = losses(steps(10000, 6700), 0.05, higher=True)
    assert loss.change == pytest.approx(-33)
