"""PPO: advantages and loss by hand, whole rollouts, and the same rollout from every loop."""

from __future__ import annotations

import math

import pytest
import torch

from ale_velocity.agents import ppo, torch_device
from ale_velocity.loops import LOOPS
from ale_velocity.measure import Protocol, measure
from test_same_transitions import open_fake

NUM_ENVS = 4
PPO_LOOPS = ["step", "send_recv", "half_batches", "quarter_batches", "ping_pong"]


def column(*values):
    return torch.tensor(values).unsqueeze(1)


def test_advantages_of_one_env_by_hand():
    """Gamma 0.99, lambda 0.95; an episode ends with the second row, so nothing flows back over it.

    Row 3: 2 + 0.99 * 0.4 - 0.2 = 2.196. Row 2: 0 - 1 = -1. Row 1: 1 + 0.99 * 1 - 0.5 + 0.99 * 0.95 * -1 = 0.5495.
    """
    estimates = ppo.advantages(
        rewards=column(1.0, 0.0, 2.0),
        dones=column(0.0, 1.0, 0.0),
        values=column(0.5, 1.0, 0.2),
        env_ids=column(0, 0, 0),
        last_values=torch.tensor([0.4]),
    )
    torch.testing.assert_close(estimates, column(0.5495, -1.0, 2.196))


def test_advantages_follow_each_env_through_uneven_batches():
    """Batches of any envs: env 0 has the rows above, env 1 one row, 1 + 0.99 * 3 - 2 = 1.97, env 2 another."""
    estimates = ppo.advantages(
        rewards=torch.tensor([[1.0, 1.0], [0.0, 0.0], [9.0, 2.0]]),
        dones=torch.tensor([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]),
        values=torch.tensor([[0.5, 2.0], [1.0, 0.0], [9.0, 0.2]]),
        env_ids=torch.tensor([[0, 1], [0, 2], [2, 0]]),
        last_values=torch.tensor([0.4, 3.0, 5.0]),
    )
    torch.testing.assert_close(estimates, torch.tensor([[0.5495, 1.97], [-1.0, 0.0], [0.0, 2.196]]))


def test_loss_by_hand():
    """Two rows: the first keeps its probability, the second's ratio 1.25 is clipped to 1.1.

    Normalised estimates are -+1/sqrt(2); gains (-1 + 1.1) / (2 sqrt(2)); entropies ln 2 and that of (3/4, 1/4);
    value loss 0.5 * (1 + 4) / 2 = 1.25.
    """
    entropy = (math.log(2) - 0.75 * math.log(0.75) - 0.25 * math.log(0.25)) / 2
    expected = -0.1 / (2 * math.sqrt(2)) - 0.01 * entropy + 0.5 * 1.25
    actual = ppo.objective(
        torch.tensor([[0.0, 0.0], [math.log(3), 0.0]]),
        torch.tensor([1.0, 2.0]),
        actions=torch.tensor([0, 0]),
        old_log_probs=torch.tensor([math.log(0.5), math.log(0.6)]),
        estimates=torch.tensor([0.0, 2.0]),
        returns=torch.tensor([0.0, 4.0]),
    )
    assert expected == pytest.approx(float(actual))


@pytest.fixture
def eager(monkeypatch):
    """Compiling takes half a minute and is not what is tested here."""
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: None)
    monkeypatch.setattr(torch_device, "num_compiled_graphs", lambda: 1)


def make(loop):
    kind = LOOPS[loop]
    agent = ppo.PpoAgent(6, torch.device("cpu"), num_envs=NUM_ENVS, num_rows=NUM_ENVS // kind.batches)
    return kind(open_fake(kind, NUM_ENVS, episode_length=50), agent, seed=1), agent


@pytest.mark.usefixtures("eager")
def test_an_update_moves_the_weights_by_a_finite_loss():
    """The agent's own check of its work passes after one minibatch."""
    agent = ppo.PpoAgent(6, torch.device("cpu"), num_envs=NUM_ENVS, num_rows=NUM_ENVS)
    observations = torch.randint(256, (4, 4, 84, 84), dtype=torch.uint8)
    actions, log_probs, values = agent.act(observations)
    agent.last_loss = agent.update(observations, actions, log_probs, torch.arange(4.0), values + 1)
    agent.check()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("loop", ["step", "ping_pong"])
def test_a_window_is_whole_rollouts_with_their_updates(loop):
    """100 iterations are rounded up to the 128 of a rollout; 4 epochs of 4 minibatches follow each."""
    running, agent = make(loop)
    agent.update = lambda *_: torch.zeros(())
    agent.check = lambda: None
    protocol = Protocol("test", reps=1, iterations=100, warmup=64)
    result = measure(running, agent, protocol, NUM_ENVS, batches=LOOPS[loop].batches, rollout=agent.rollout)
    assert [window.rows for window in result.windows] == [128 * NUM_ENVS]
    assert result.warmup_iterations == 128
    assert agent.num_updates == 2 * 16
    assert agent.updates_per_env_step == 16 / (128 * NUM_ENVS)


def rollout_by_env(loop):
    """Advantages of each env's rows, in order, after one rollout."""
    running, agent = make(loop)
    agent.learn_from_rollout = lambda: None
    running.run(ppo.ROLLOUT * LOOPS[loop].batches)
    ids, estimates = agent.transitions.env_ids, agent.estimate_advantages()
    return torch.stack([estimates[ids == env_id] for env_id in range(NUM_ENVS)])


@pytest.mark.usefixtures("eager")
def test_every_loop_gives_each_env_the_same_advantages():
    """However batches come, an env's rows are followed by its own, and the last by its newest observation."""
    expected = rollout_by_env("step")
    for loop in PPO_LOOPS[1:]:
        torch.testing.assert_close(rollout_by_env(loop), expected, rtol=1e-4, atol=1e-5)
