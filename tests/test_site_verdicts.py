"""From samples to points, intervals and verdicts, without asv and without a browser."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import statistics

import pytest

from ale_velocity.errors import VelocityError
from ale_velocity.site.order import natural_key
from ale_velocity.site.points import Line, Point, Setup, benchmark_label, chart_name
from ale_velocity.site.verdicts import line_changes, shifts
from ale_velocity.stats import mean_interval
from ale_velocity.timeline.manifest import Release, Series
from ale_velocity.units import direction

SETUP = Setup("vm", "standard", "cpu", "pong", "default", "3.11")
LINE = Line("ale-py", SETUP, "dqn.DqnTraining.track_env_steps_per_second", (("loop", "step"), ("num_envs", "8")))


def releases(count, notes=()):
    """Releases 0, 1, 2, ... of the series."""
    notes = dict(notes)
    return tuple(
        Release(f"ale-py-{i}", str(i), dt.datetime(2026, 1, 1 + i, tzinfo=dt.timezone.utc), (), "", notes.get(i, ""))
        for i in range(count)
    )


def samples(rate, processes=6):
    """Five windows of each process, processes 1% apart."""
    return tuple(rate * (1 + 0.01 * (p % 2)) * (1 - 0.002 * w) for p in range(processes) for w in range(5))


def changes(rates, notes=(), unit="env-steps/s", *, processes=6, works=(), paces=()):
    """Verdicts on releases with these rates, fingerprints and paces; None is a release without a result."""
    series = Series("ale-py", "ale-py", {}, releases(len(rates), notes))
    points = {
        release.name: Point(
            *(LINE, release, unit, "measured", samples(rate, processes), rate),
            behaviour=work,
            paces=((pace,) * 6,) if pace else (),
        )
        for release, rate, work, pace in itertools.zip_longest(series.releases, rates, works, paces)
        if rate
    }
    return list(line_changes(series, points))


def words(*args, **kwargs):
    return [change.verdict.word for change in changes(*args, **kwargs)]


def test_a_loss_and_its_recovery_are_both_found():
    """Good, bad, bad, good: a loss, nothing, a gain, each between the right releases."""
    found = changes([100, 80, 80, 100])
    assert [change.verdict.word for change in found] == ["first measured", "slower", "same", "faster"]
    steps = [(change.verdict.step.before.release.name, change.point.release.name) for change in found[1:]]
    assert steps == [("ale-py-0", "ale-py-1"), ("ale-py-1", "ale-py-2"), ("ale-py-2", "ale-py-3")]
    assert found[1].verdict.step.ratio == pytest.approx(0.8)


def cells_together(ratios, *, works=(), paces=(None, None)):
    """Verdicts of a release's cells, one process a side, each `ratios` times as fast as before."""
    series = Series("ale-py", "ale-py", {}, releases(2))
    found = []
    for number, (ratio, work) in enumerate(itertools.zip_longest(ratios, works)):
        line = dataclasses.replace(LINE, params=(("loop", "step"), ("num_envs", str(2**number))))
        points = {
            release.name: Point(
                *(line, release, "env-steps/s", "measured", samples(rate, 1), rate),
                behaviour=behaviour,
                paces=((pace,) * 6,) if pace else (),
            )
            for release, rate, behaviour, pace in zip(
                series.releases, (100, 100 * ratio), ("1-a", work or "1-a"), paces, strict=True
            )
        }
        found += line_changes(series, points)
    return found


def test_cells_that_change_alike_tell_together_what_none_tells_alone():
    """8% is far below what one process a side can tell."""
    found = cells_together([1.08, 1.07, 1.09, 1.08])
    assert [change.verdict.word for change in found] == ["first measured", "inconclusive"] * 4
    (shift,) = shifts(found)
    assert (shift.word, shift.cells, shift.benchmark) == ("faster", 4, LINE.benchmark)
    assert (shift.before.version, shift.after.version) == ("0", "1")
    assert shift.comparison.ratio == pytest.approx(1.08, rel=0.001)


def test_cells_that_do_not_change_alike_tell_nothing():
    (shift,) = shifts(cells_together([1.3, 0.9, 1.2, 1.0]))
    assert shift.word == "inconclusive"


def test_one_cell_is_no_more_than_its_own_verdict():
    assert shifts(cells_together([1.08])) == []


def test_cells_of_different_work_are_not_among_them():
    (shift,) = shifts(cells_together([1.08, 1.07, 3.0, 1.09], works=[None, None, "1-b", None]))
    assert (shift.word, shift.cells) == ("faster", 3)


def test_the_machine_s_pace_explains_what_cells_tell_together():
    (shift,) = shifts(cells_together([1.3, 1.29, 1.31], paces=(0.010, 0.0078)))
    assert shift.word == "inconclusive"


def test_a_gap_is_no_change():
    """A release without a result is stepped over, also at the end."""
    found = changes([100, None, 80, None])
    assert [(change.point.release.name, change.verdict.word) for change in found] == [
        ("ale-py-0", "first measured"),
        ("ale-py-2", "slower"),
    ]
    assert found[1].verdict.step.before.release.name == "ale-py-0"


def test_overlapping_processes_are_no_verdict():
    """Two processes a side that overlap are inconclusive; the same clearly apart is a verdict, with six."""
    assert words([100, 100.5], processes=2) == ["first measured", "inconclusive"]
    assert words([100, 130]) == ["first measured", "faster"]


def test_windows_that_spread_are_no_verdict_on_one_process():
    """A factor of 1.42, one process a side: faster where windows agree, and not where those before vary by 12%."""
    calm, noisy, faster = (1000, 999, 998, 997, 996), (1000, 740, 860, 940, 930), (1420, 1418, 1416, 1414, 1412)
    series = Series("ale-py", "ale-py", {}, releases(2))
    for before, word in ((calm, "faster"), (noisy, "inconclusive")):
        rates = zip(series.releases, (before, faster), strict=True)
        points = {one.name: Point(LINE, one, "env-steps/s", "measured", side, side[2]) for one, side in rates}
        assert [change.verdict.word for change in line_changes(series, points)] == ["first measured", word]


def test_lower_is_better_for_times():
    """The unit decides the direction."""
    assert words([100, 130], unit="microseconds/step") == ["first measured", "slower"]


def test_different_work_is_never_a_gain():
    """A release whose note says so is not compared, neither with the one before nor with the one after."""
    assert words([100, 200, 100], notes=[(1, "different work: skips frames")]) == [
        "first measured",
        "different work",
        "different work",
    ]


def test_equal_fingerprints_are_the_same_work_whatever_a_note_says():
    """As of gymnasium's envs on ale-py 0.11.0, whose vector env alone skips frames wrongly."""
    note = "different work: skips frames"
    assert words([100, 80, 80], notes=[(1, note)], works=["1-a", "1-a", "1-a"]) == ["first measured", "slower", "same"]
    assert words([100, 80, 80], notes=[(1, note)], works=["1-a", "2-a", None])[1:] == ["different work"] * 2


def test_another_fingerprint_is_never_a_loss():
    """Where both releases have one; a release without one is compared as before."""
    found = changes([100, 80, 80, 60], works=["1-a", "1-b", "1-b", None])
    assert [change.verdict.word for change in found] == ["first measured", "different work", "same", "slower"]
    assert found[1].verdict.reason.startswith("different work than ale-py-0: the same seed and actions gave other")


def test_the_machine_s_pace_is_no_release_s_doing():
    """A loss that the cores' pace explains is inconclusive; one beyond it is a loss; an unknown pace explains none."""
    found = changes([100, 70, 70, 40], paces=[0.010, 0.014, None, 0.010])
    assert [change.verdict.word for change in found] == ["first measured", "inconclusive", "same", "slower"]
    assert "the machine's own pace was 0.71 times" in found[1].verdict.reason
    assert words([100, 40], paces=[0.010, 0.014]) == ["first measured", "slower"]


def test_without_windows_there_is_no_verdict():
    """asv keeps samples on request only: the median is drawn, and the reason says what is missing."""
    series = Series("ale-py", "ale-py", {}, releases(2))
    points = {r.name: Point(LINE, r, "env-steps/s", "measured", (), 100.0) for r in series.releases}
    found = list(line_changes(series, points))
    assert (found[1].verdict.word, found[1].point.interval.mean) == ("inconclusive", 100.0)
    assert "--record-samples" in found[1].verdict.reason


def test_intervals_count_windows_of_one_process_and_means_of_several():
    """As bench prints for one process; over process means for more."""
    release = releases(1)[0]
    one, two = samples(100, 1), samples(100, 2)
    single = Point(LINE, release, "env-steps/s", "measured", one, 100.0)
    double = Point(LINE, release, "env-steps/s", "measured", two, 100.0)
    assert (len(single.processes), len(double.processes)) == (1, 2)
    assert single.interval.half_width == pytest.approx(mean_interval(one).half_width, rel=1e-4)
    means = [statistics.fmean(two[:5]), statistics.fmean(two[5:])]
    assert double.interval.half_width == pytest.approx(mean_interval(means).half_width, rel=1e-4)


def test_names_for_people_and_for_charts():
    """Labels of benchmarks, names of arrays of chart constants."""
    assert benchmark_label(LINE.benchmark) == "DQN training"
    assert benchmark_label("ppo.PpoTraining.track_env_steps_per_cpu_second") == (
        "PPO training, env steps per cpu second"
    )
    names = [chart_name({"loop": loop}) for loop in ("step", "send_recv", "double_buffer")]
    assert names == ["stepRaw", "recvRaw", "doubleBufferRaw"]
    assert chart_name({"learner": "graphed", "loop": "step"}) == "stepRawGraphed"
    assert chart_name({"learner": "eager", "loop": "step"}) == "stepRaw"


def test_natural_order():
    """Numbers within words count as numbers."""
    assert sorted(["2.10.0", "2.4.1", "2.9.1", "16", "8"], key=natural_key) == ["2.4.1", "2.9.1", "2.10.0", "8", "16"]


def test_an_unknown_unit_is_refused():
    """Nobody guesses which way is better."""
    with pytest.raises(VelocityError, match="whether more 'bananas' is better is not known"):
        direction("bananas")
