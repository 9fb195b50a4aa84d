"""Counting, windows and refusals, with a fake clock."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ale_velocity.errors import VelocityError
from ale_velocity.loops.send_recv import SendRecvLoop
from ale_velocity.loops.step import StepLoop
from ale_velocity.measure import PROTOCOLS, Protocol, Window, measure, time_window
from fakes import FakeClock, FakeVectorEnv, RecordingAgent

SHORT = Protocol("short", reps=3, iterations=10, warmup=4)


@pytest.mark.parametrize("loop_class", [StepLoop, SendRecvLoop])
def test_throughput_is_rows_over_seconds(loop_class):
    """100 iterations of 8 envs in one second are 800 env-steps/s, whatever the frameskip."""
    clock = FakeClock()
    envs = FakeVectorEnv(8, clock=clock, step_s=0.01)
    agent = RecordingAgent()
    loop = loop_class(envs, agent, seed=1)
    done = measure(loop, agent, dataclasses.replace(SHORT, iterations=100), 8, clock=clock)
    assert done.samples == [800.0, 800.0, 800.0]
    assert [window.rows for window in done.windows] == [800, 800, 800]


def test_autoreset_rows_count_as_env_steps():
    """With next-step autoreset the row that resets an env is received, and counted, like any other."""
    envs = FakeVectorEnv(1, episode_length=3)
    agent = RecordingAgent()
    assert StepLoop(envs, agent, seed=1).run(8) == 8
    assert [bool(row[3]) for row in agent.transitions] == [False, False, True, False, False, False, True, False]


def test_a_pending_device_second_belongs_to_the_window():
    """The device is drained before both clock reads: work submitted in a window is paid for in it."""
    clock = FakeClock()
    pending = []

    def run(iterations):
        pending.append(1.0)
        clock.advance(1.0)
        return iterations

    def drain():
        while pending:
            clock.advance(pending.pop())

    pending.append(5.0)  # left over from before: not this window's
    window = time_window(run, 10, drain=drain, clock=clock, cpu_clock=clock)
    assert window == Window(rows=10, elapsed_s=2.0, cpu_s=2.0)


def test_a_slow_first_call_is_warm_up():
    """A compilation in the first call does not reach the windows, and is reported apart."""
    clock = FakeClock()
    envs = FakeVectorEnv(2, clock=clock, step_s=0.001)
    agent = RecordingAgent()
    policy = agent.policy
    delays = [5.0]

    def slow_once(observations):
        if delays:
            clock.advance(delays.pop())
        return policy(observations)

    loop = StepLoop(envs, agent, seed=1)
    agent.policy = slow_once
    done = measure(loop, agent, SHORT, 2, clock=clock)
    assert done.samples == [2000.0, 2000.0, 2000.0]
    assert len(done.pace_s) == 4
    assert min(done.pace_s) > 0
    assert done.warmup_s == pytest.approx(5.004)


def test_iterations_count_from_zero_in_each_window():
    """The agent's schedule starts anew in each window."""
    agent = RecordingAgent()
    measure(StepLoop(FakeVectorEnv(2, step_s=1), agent, seed=1), agent, SHORT, 2, clock=_ticking())
    assert agent.learnt == [*range(4), *range(10), *range(10), *range(10)]


def test_warm_up_lasts_until_the_first_update():
    """With one env and 32 iterations the replay holds a minibatch too late: the warm-up is repeated."""
    agent = RecordingAgent()
    agent.num_updates = 0

    def learn(iteration):
        agent.learnt.append(iteration)
        agent.num_updates = int(len(agent.learnt) > 5)

    agent.learn = learn
    done = measure(StepLoop(FakeVectorEnv(2), agent, seed=1), agent, SHORT, 2, clock=_ticking())
    assert done.warmup_iterations == 8


def test_an_agent_that_never_updates_is_refused():
    """A replay that can never hold a minibatch must not be timed as a training loop."""
    agent = RecordingAgent()
    agent.num_updates = 0
    with pytest.raises(VelocityError, match="no update in 64 warm-ups"):
        measure(StepLoop(FakeVectorEnv(2), agent, seed=1), agent, SHORT, 2, clock=_ticking())


def test_missing_rows_are_refused():
    """A loop that receives fewer rows than its iterations promise gives no number."""
    agent = RecordingAgent()
    loop = StepLoop(FakeVectorEnv(2), agent, seed=1)
    with pytest.raises(VelocityError, match="received 20 rows in a window, expected 40"):
        measure(loop, agent, SHORT, 4, clock=_ticking())


def test_a_recompile_in_a_window_is_refused():
    """The number of compiled graphs may grow in the warm-up only."""
    agent = RecordingAgent()
    loop = StepLoop(FakeVectorEnv(2), agent, seed=1)

    def learn(iteration):
        agent.num_compiled += iteration == 7

    agent.learn = learn
    with pytest.raises(VelocityError, match="recompiled during window 1"):
        measure(loop, agent, SHORT, 2, clock=_ticking())


def test_constant_observations_are_refused():
    """One colour in every pixel is not a game."""
    agent = RecordingAgent()
    envs = FakeVectorEnv(2)
    envs._observations = lambda: np.full((2, 4, 84, 84), 7, dtype=np.uint8)
    with pytest.raises(VelocityError, match="every pixel is 7"):
        measure(StepLoop(envs, agent, seed=1), agent, SHORT, 2, clock=_ticking())


def test_a_frozen_emulator_is_refused():
    """One picture in every window is not a game either."""
    agent = RecordingAgent()
    envs = FakeVectorEnv(2)
    picture = envs.reset(seed=1)[0]
    envs._observations = lambda: picture
    with pytest.raises(VelocityError, match="the same after every window"):
        measure(StepLoop(envs, agent, seed=1), agent, SHORT, 2, clock=_ticking())


def test_a_clock_that_stands_still_is_refused():
    """No time passed means no rate."""
    agent = RecordingAgent()
    with pytest.raises(VelocityError, match=r"took 0.0 s"):
        measure(StepLoop(FakeVectorEnv(2), agent, seed=1), agent, SHORT, 2, clock=FakeClock())


def test_the_agents_own_check_can_refuse():
    """Losses and weights are the agent's to judge, before anything is reported."""
    agent = RecordingAgent()

    def check():
        raise VelocityError("weights did not change")

    agent.check = check
    with pytest.raises(VelocityError, match="weights did not change"):
        measure(StepLoop(FakeVectorEnv(2), agent, seed=1), agent, SHORT, 2, clock=_ticking())


def test_samples_are_plain_floats_of_four_digits():
    """asv cannot serialise numpy's floats, and prints all digits it is given."""
    agent = RecordingAgent()
    clock = FakeClock()
    loop = StepLoop(FakeVectorEnv(3, clock=clock, step_s=0.0007), agent, seed=1)
    samples = measure(loop, agent, SHORT, 3, clock=clock).samples
    assert samples == [4286.0, 4286.0, 4286.0]
    assert {type(sample) for sample in samples} == {float}


@pytest.mark.parametrize(
    ("name", "num_envs", "expected"),
    [
        ("reference", 1, 1000),
        ("reference", 256, 1000),
        ("standard", 1, 1000),
        ("standard", 16, 1000),
        ("standard", 64, 250),
        ("standard", 256, 100),
        ("quick", 8, 200),
    ],
)
def test_window_iterations(name, num_envs, expected):
    """The table of protocols in iterations a window."""
    assert PROTOCOLS[name].window_iterations(num_envs) == expected


def test_protocols():
    """Windows, warm-up and counts of the three protocols."""
    table = {name: (p.reps, p.warmup, p.counts) for name, p in PROTOCOLS.items()}
    all_counts = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    assert table == {
        "reference": (5, 64, all_counts),
        "standard": (5, 64, all_counts),
        "quick": (2, 32, (1, 8)),
    }


def _ticking():
    """A clock that moves by a second at each reading."""
    times = iter(range(10_000))
    return lambda: float(next(times))
