"""All loops show the agent the same env-steps, in their own order."""

from __future__ import annotations

import contextlib
from importlib import metadata

import pytest
from packaging.version import Version

from ale_velocity import backends, envs
from ale_velocity.checked import CheckedEnvs, TwoEnvs
from ale_velocity.errors import VelocityError
from ale_velocity.loops import DOUBLE_BUFFER, LOOPS
from ale_velocity.measure import Protocol, measure
from batched_fakes import BatchedFakeEnv, PairingAgent

NUM_ENVS = 8
ENV_STEPS = 2000
WHOLE = ["step", "send_recv", "torch_ops"]
DOUBLE_BUFFERED = ["half_batches", "ping_pong"]


def transitions(loop, num_envs=NUM_ENVS, env_steps=ENV_STEPS):
    """Run real envs for some env-steps and return each env's transitions."""
    kind = LOOPS[loop]
    agent = PairingAgent(num_envs)
    with contextlib.closing(
        backends.open_envs("ale", kind.layout, "pong", num_envs, 2, batches=kind.batches)
    ) as opened:
        running = kind(opened, agent, envs.SEED)
        assert env_steps == running.run(env_steps * kind.batches // num_envs)
        running.close()
    return agent.transitions


@pytest.fixture(scope="module")
def reference():
    return transitions("step")


@pytest.mark.parametrize("loop", WHOLE[1:])
def test_whole_loops_give_identical_transitions(reference, loop):
    """One seed and one policy: not one transition of 2,000 env-steps differs from the blocking loop's."""
    assert reference == transitions(loop)


def test_ping_pong_gives_each_env_its_own_transitions(reference):
    """The second env of the pair goes on with the seeds where the first ended."""
    assert reference == transitions("ping_pong")


@pytest.mark.skipif(
    Version(metadata.version("ale-py")) < Version("0.12"),
    reason="half batches of ale-py 0.11 end in a segmentation fault now and then, in a bare loop too",
)
@pytest.mark.parametrize("loop", ["half_batches", "quarter_batches"])
def test_part_batches_give_each_env_its_own_transitions(reference, loop):
    """An env's transitions are the blocking loop's, in order; the first few may fall before all envs were seen."""
    for env_id, seen in transitions(loop).items():
        expected = reference[env_id]
        start = expected.index(seen[0])
        length = min(len(seen), len(expected) - start)
        assert length > ENV_STEPS // NUM_ENVS // 2
        assert expected[start : start + length] == seen[:length]


def open_fake(kind, num_envs, **options):
    if kind.layout == "two_envs":
        half = num_envs // 2
        return TwoEnvs(*(CheckedEnvs(BatchedFakeEnv(half, **options), half, half) for _ in range(2)))
    batch_size = num_envs // kind.batches
    return CheckedEnvs(BatchedFakeEnv(num_envs, batch_size, **options), num_envs, batch_size)


@pytest.mark.parametrize("loop", LOOPS)
def test_windows_hold_the_same_env_steps_in_every_loop(loop):
    """A protocol's iterations are rounds: half as many rows an iteration means twice the iterations."""
    kind = LOOPS[loop]
    agent = PairingAgent(4)
    running = kind(open_fake(kind, 4), agent, seed=1)
    result = measure(running, agent, Protocol("test", reps=2, iterations=10, warmup=4), 4, batches=kind.batches)
    assert [window.rows for window in result.windows] == [40, 40]
    assert {4 // kind.batches} == set(agent.rows_seen)
    assert [*range(4), *range(10), *range(10)] == agent.learnt


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_pairs_rewards_with_the_actions_that_earned_them(loop):
    """The fake env pays an env's action as its reward, and counts its steps in the picture."""
    kind = LOOPS[loop]
    agent = PairingAgent(4)
    running = kind(open_fake(kind, 4), agent, seed=1)
    running.run(20 * kind.batches)
    running.close()
    for env_id in range(4):
        rows = agent.transitions[env_id]
        assert [float(action) for _, action, *_ in rows] == [reward for _, _, reward, *_ in rows]
        assert [after for *_, after in rows[:-1]] == [before for before, *_ in rows[1:]]


def test_double_buffer_is_one_of_the_two_forms():
    """The default form is one constant."""
    assert DOUBLE_BUFFER is LOOPS["double_buffer"]
    assert DOUBLE_BUFFER in [LOOPS[loop] for loop in DOUBLE_BUFFERED]


@pytest.mark.parametrize(("autoreset", "episodes"), [("next_step", 3), ("same_step", 4)])
def test_every_row_received_is_an_env_step(autoreset, episodes):
    """Episodes of 3 steps in 12 iterations: the row of a next-step autoreset counts, and takes an action's place."""
    env = BatchedFakeEnv(2, episode_length=3, autoreset=autoreset)
    running = LOOPS["step"](CheckedEnvs(env, 2, 2), PairingAgent(2), seed=1)
    assert running.run(12) == 24
    assert 2 * episodes == env.num_episodes


@pytest.mark.parametrize("loop", ["half_batches", "quarter_batches"])
def test_a_part_batch_loop_starts_only_after_all_envs_were_seen(loop):
    """After the reset of 16 envs in batches of 8 or 4, one batch is not all of them."""
    checked = open_fake(LOOPS[loop], 16)
    LOOPS[loop](checked, PairingAgent(16), seed=1)
    assert checked.received.all()


def test_an_env_that_never_returns_from_its_reset_is_named():
    """Envs 2 and 3 are never in a batch: the loop does not start."""
    stuck = CheckedEnvs(BatchedFakeEnv(4, 2, fault=lambda ids: [0, 1] if 3 in ids else ids), num_envs=4, batch_size=2)
    with pytest.raises(VelocityError, match=r"envs \[2, 3\] did not return from their reset"):
        LOOPS["half_batches"](stuck, PairingAgent(4), seed=1)


def test_an_env_that_stops_returning_is_named():
    """Envs 2 and 3 are gone after the start: a long enough run refuses the others' rows."""
    gone = []
    checked = CheckedEnvs(BatchedFakeEnv(4, 2, fault=lambda ids: [0, 1] if 3 in ids and gone else ids), 4, 2)
    running = LOOPS["half_batches"](checked, PairingAgent(4), seed=1)
    gone.append(True)
    with pytest.raises(VelocityError, match=r"envs \[2, 3\] never returned"):
        running.run(64)
