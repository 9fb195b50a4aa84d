"""CPU time: read with the wall clock, and refused where it is not the cost of the work."""

import pytest

from ale_velocity.cell import cpu_time_gap
from ale_velocity.measure import Measurement, Window, time_window


def test_both_clocks_frame_the_drained_window():
    """Public case 21: 8 envs x 100 iterations in 1 s are 800 env-steps/s; frames and frameskip do not enter."""
    events = []
    clock = iter([10.0, 11.0])
    cpu_clock = iter([3.0, 5.0])
    window = time_window(
        lambda iterations: events.append("run") or 8 * iterations,
        100,
        drain=lambda: events.append("drain"),
        clock=lambda: next(clock),
        cpu_clock=lambda: next(cpu_clock),
    )

    assert window == Window(rows=800, elapsed_s=1.0, cpu_s=2.0)
    assert (window.env_steps_per_second, window.env_steps_per_cpu_second) == (800.0, 400.0)
    assert events == ["drain", "run", "drain"]


def test_samples_of_both_clocks_are_rounded():
    """What asv stores has 4 significant digits."""
    measurement = Measurement(
        (Window(rows=100_000, elapsed_s=3.0, cpu_s=7.0),), warmup_s=1.0, warmup_iterations=64, pace_s=()
    )

    assert (measurement.samples, measurement.cpu_samples) == ([33330.0], [14290.0])


@pytest.mark.parametrize(
    ("facts", "gap"),
    [
        ({"device": "none"}, None),
        ({"device": "cpu", "torch_threads": 1}, None),
        ({"device": "cpu", "torch_threads": 8}, "torch's 8 threads spin"),
        ({"device": "cuda", "torch_threads": 1}, "leaves out the work of the GPU"),
    ],
)
def test_cpu_time_is_refused_where_it_means_nothing(facts, gap):
    """Spinning threads and work on a GPU make the measure n/a, with the reason."""
    said = cpu_time_gap(facts)

    assert (said is None) == (gap is None)
    assert (gap or "") in (said or "")
