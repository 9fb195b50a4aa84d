"""Loops: the order of calls on a fake env, and equal transitions on the real one."""

from __future__ import annotations

import numpy as np
import pytest

from ale_velocity import envs
from ale_velocity.agents import make_agent
from ale_velocity.loops.send_recv import SendRecvLoop
from ale_velocity.loops.step import StepLoop
from fakes import FakeVectorEnv, RecordingAgent

LOOPS = {"step": StepLoop, "send_recv": SendRecvLoop}


def test_send_recv_sends_before_it_stores():
    """The emulator works while the learner stores and learns: that is the point of the loop."""
    vector_env, agent = FakeVectorEnv(2), RecordingAgent()
    loop = SendRecvLoop(vector_env, agent, seed=1)
    agent.store = lambda *_: vector_env.calls.append(("store",))
    agent.learn = lambda iteration: vector_env.calls.append(("learn", iteration))
    loop.run(2)
    loop.close()
    assert [call[0] for call in vector_env.calls] == [
        *("reset", "send"),
        *("recv", "send", "store", "learn"),
        *("recv", "send", "store", "learn"),
        "recv",
    ]


def test_step_waits_before_it_stores():
    """The blocking loop has its batch back before it stores and learns."""
    vector_env, agent = FakeVectorEnv(2), RecordingAgent()
    loop = StepLoop(vector_env, agent, seed=1)
    agent.store = lambda *_: vector_env.calls.append(("store",))
    agent.learn = lambda iteration: vector_env.calls.append(("learn", iteration))
    loop.run(1)
    assert [call[0] for call in vector_env.calls] == ["reset", "send", "recv", "store", "learn"]


@pytest.mark.parametrize("loop_class", LOOPS.values(), ids=list(LOOPS))
def test_a_transition_joins_what_belongs_together(loop_class):
    """Each stored row holds an observation, the action taken on it, and what that action led to."""
    agent = RecordingAgent()
    loop_class(FakeVectorEnv(2, episode_length=3), agent, seed=1).run(5)
    ages = [(int(row[0][0, 0, 0]), int(row[1]), int(row[2]), int(row[4][0, 0, 0])) for row in agent.transitions[::2]]
    # (age, action = age, reward = action, next age); after the third step the env resets to age 0.
    assert ages == [(0, 0, 0, 1), (1, 1, 1, 2), (2, 2, 2, 3), (3, 3, 3, 0), (0, 0, 0, 1)]


@pytest.mark.parametrize("loop_class", LOOPS.values(), ids=list(LOOPS))
def test_runs_continue_each_other(loop_class):
    """Two short runs give the transitions of one long run."""
    once, twice = RecordingAgent(), RecordingAgent()
    loop_class(FakeVectorEnv(2), once, seed=1).run(7)
    loop = loop_class(FakeVectorEnv(2), twice, seed=1)
    assert loop.run(3) + loop.run(4) == 14
    assert _equal(once.transitions, twice.transitions)


@pytest.mark.parametrize("num_envs", [1, 8])
def test_loops_give_the_same_transitions_on_real_games(num_envs):
    """2,000 env-steps of Pong from one seed under one policy are the same in every loop."""
    recorded = {name: _real_transitions(name, num_envs, 2000 // num_envs) for name in LOOPS}
    reference = recorded.pop("step")
    assert len(reference) == 2000
    assert {int(row[1]) for row in reference} > {0}  # the policy does not always choose the same action
    assert {name: _equal(rows, reference) for name, rows in recorded.items()} == dict.fromkeys(recorded, True)


def test_loops_give_the_same_transitions_with_the_dqn_policy():
    """The compiled DQN policy, its weights held, acts the same in every loop."""
    recorded = {}
    for name, loop_class in LOOPS.items():
        vector_env = envs.open_vector_env("pong", 4, 2)
        agent = make_agent("dqn", num_envs=4, num_actions=6, device="cpu")
        recorder = RecordingAgent()
        agent.learn = lambda _: None
        agent.store = lambda obs, act, rew, done, nxt, r=recorder: r.store(
            *map(np.asarray, (obs, act, rew, done)), nxt.numpy()
        )
        loop = loop_class(vector_env, agent, envs.SEED)
        loop.run(50)
        loop.close()
        vector_env.close()
        recorded[name] = recorder.transitions
    assert _equal(recorded["step"], recorded["send_recv"])


def _real_transitions(name, num_envs, num_iterations):
    vector_env = envs.open_vector_env("pong", num_envs, 2)
    agent = RecordingAgent(lambda observations: observations.sum(axis=(1, 2, 3), dtype=np.int64) % 6)
    loop = LOOPS[name](vector_env, agent, envs.SEED)
    loop.run(num_iterations)
    loop.close()
    vector_env.close()
    return agent.transitions


def _equal(left, right):
    return len(left) == len(right) and all(
        np.array_equal(a, b) for one, other in zip(left, right, strict=True) for a, b in zip(one, other, strict=True)
    )
