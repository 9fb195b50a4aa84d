"""DQN against hand-computed numbers."""

from __future__ import annotations

import pytest
import torch

from ale_velocity.agents import make_agent, torch_device
from ale_velocity.agents.dqn import DqnAgent, EveryRounds, FixedRatio, QNetwork, Replay
from ale_velocity.errors import NotAvailableError, VelocityError

CPU = torch.device("cpu")


def _agent(**changes):
    options = {"num_envs": 1, "num_rows": 1, "schedule": EveryRounds(4, num_envs=1), "batch_size": 32, "buffer_cap": 64}
    return DqnAgent(6, CPU, **{**options, **changes})


def _rows(*numbers):
    """Transitions whose every column holds the row's number."""
    values = torch.tensor(numbers)
    pictures = values.to(torch.uint8)[:, None, None, None].expand(-1, 4, 84, 84)
    return pictures, values, values.float(), values.float(), pictures


def test_the_network_is_the_nature_cnn():
    """Its weights are counted by hand, layer by layer."""
    expected = (
        (4 * 8 * 8 * 32 + 32) + (32 * 4 * 4 * 64 + 64) + (64 * 3 * 3 * 64 + 64) + (3136 * 512 + 512) + (512 * 6 + 6)
    )
    assert sum(weights.numel() for weights in QNetwork(6).parameters()) == expected


def test_pixels_are_scaled_inside_the_network():
    """White pixels reach the first layer as 1."""
    network = QNetwork(6)
    white = torch.full((1, 4, 84, 84), 255, dtype=torch.uint8)
    assert torch.equal(network(white), network.layers(torch.ones(1, 4, 84, 84)))


def test_replay_wraps_around():
    """A batch that reaches the end goes on at the start, overwriting the oldest rows."""
    replay = Replay(5, CPU)
    replay.add(*_rows(1, 2, 3))
    assert (replay.size, replay.actions[:3].tolist()) == (3, [1, 2, 3])
    replay.add(*_rows(4, 5, 6, 7))
    assert replay.size == 5
    assert replay.actions.tolist() == [6, 7, 3, 4, 5]
    assert replay.rewards.tolist() == [6.0, 7.0, 3.0, 4.0, 5.0]
    assert replay.next_observations[:, 0, 0, 0].tolist() == [6, 7, 3, 4, 5]
    replay.add(*_rows(8, 9, 10))
    assert replay.actions.tolist() == [6, 7, 8, 9, 10]


def test_replay_that_is_filled_exactly():
    """A batch that ends at the end leaves the next one at the start."""
    replay = Replay(4, CPU)
    replay.add(*_rows(1, 2))
    replay.add(*_rows(3, 4))
    replay.add(*_rows(5))
    assert replay.actions.tolist() == [5, 2, 3, 4]


def test_samples_come_from_the_filled_part_with_replacement():
    """Rows never written are never drawn; some row is drawn twice; columns stay together."""
    torch.manual_seed(0)
    replay = Replay(1000, CPU)
    replay.add(*_rows(1, 2, 3))
    observations, actions, rewards, dones, next_observations = replay.sample(64)
    assert set(actions.tolist()) == {1, 2, 3}
    for column in (rewards, dones, observations[:, 0, 0, 0], next_observations[:, 3, 83, 83]):
        assert column.tolist() == actions.tolist()


def test_update_against_a_hand_computed_loss():
    """Smooth L1 of Q(s, a) against r + 0.99 (1 - done) max Q_target(s'), and one Adam step of 1e-4."""
    agent = _agent()
    with torch.no_grad():
        for network, bias in ((agent.network, [1.0, 2, 3, 4, 5, 6]), (agent.target, [0.0, 0, 10, 0, 0, 0])):
            network.layers[-1].weight.zero_()
            network.layers[-1].bias.copy_(torch.tensor(bias))
    pictures = torch.zeros((2, 4, 84, 84), dtype=torch.uint8)
    loss = agent.update(pictures, torch.tensor([0, 5]), torch.tensor([0.5, 5.75]), torch.tensor([0.0, 1.0]), pictures)
    # Row 1: y = 0.5 + 0.99 * 10 = 10.4, Q = 1, |9.4| - 0.5 = 8.9. Row 2 is done: y = 5.75, Q = 6, 0.25 ** 2 / 2.
    assert loss.item() == pytest.approx((8.9 + 0.03125) / 2)
    # Adam's first step moves each touched value by the learning rate, against its gradient.
    moved = agent.network.layers[-1].bias.tolist()
    assert moved == pytest.approx([1.0001, 2, 3, 4, 5, 5.9999], abs=1e-6)


def test_updates_follow_the_schedule():
    """One update every 4 iterations counted from 0, none before the replay holds a minibatch."""
    agent = _agent(batch_size=2)
    agent.replay.add(*_rows(1))
    agent.learn(0)
    assert agent.num_updates == 0
    agent.replay.add(*_rows(2))
    for iteration in range(9):
        agent.learn(iteration)
    assert agent.num_updates == 3


def test_acting_is_compiled_greedy_and_equal_to_eager():
    """Actions are the argmax of the network, from a graph that exists."""
    torch.compiler.reset()  # another test may have compiled the same shapes
    agent = make_agent("dqn", num_envs=4, num_actions=6, device="cpu", buffer_cap=64)
    before = agent.num_compiled
    observations = torch.randint(0, 255, (4, 4, 84, 84), dtype=torch.uint8)
    actions = agent.act(observations)
    assert agent.num_compiled == before + 1
    assert torch.equal(actions, agent.network(observations).argmax(dim=1))
    kept = actions.clone()
    agent.act(255 - observations)
    assert torch.equal(actions, kept)
    assert agent.num_compiled == before + 1


def test_check_refuses_an_agent_that_did_not_learn(monkeypatch):
    """No compiled path, no loss, no changed weight, or a weight that is not finite: no number."""
    agent = _agent(batch_size=2)
    monkeypatch.setattr(torch_device, "num_compiled_graphs", lambda: 0)
    with pytest.raises(VelocityError, match="never compiled"):
        agent.check()
    monkeypatch.setattr(torch_device, "num_compiled_graphs", lambda: 1)
    with pytest.raises(VelocityError, match="last loss is None"):
        agent.check()
    agent.last_loss = torch.tensor(0.5)
    with pytest.raises(VelocityError, match="did not change in 0 updates"):
        agent.check()
    agent.replay.add(*_rows(1, 2))
    agent.learn(0)
    agent.check()
    agent.last_loss = torch.tensor(float("nan"))
    with pytest.raises(VelocityError, match="last loss is nan"):
        agent.check()
    agent.last_loss = torch.tensor(0.5)
    with torch.no_grad():
        agent.network.layers[0].weight[0, 0, 0, 0] = float("inf")
    with pytest.raises(VelocityError, match="weights are not finite"):
        agent.check()


def test_no_compiler_is_not_available(monkeypatch, tmp_path):
    """Without a compiler the cell is n/a with the reason, never a silent eager run."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(NotAvailableError, match="no C\\+\\+ compiler .* install g\\+\\+"):
        make_agent("dqn", num_envs=1, num_actions=6, device="cpu")


def test_no_python_headers_is_not_available(monkeypatch, tmp_path):
    """The generated code includes Python.h."""
    monkeypatch.setattr(torch_device.sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(NotAvailableError, match="python3-dev"):
        make_agent("dqn", num_envs=1, num_actions=6, device="cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_cuda_without_a_device_is_an_error():
    """Asking for cuda never ends on the CPU."""
    with pytest.raises(VelocityError, match="sees no CUDA device"):
        make_agent("dqn", num_envs=1, num_actions=6, device="cuda")


def test_threads_are_set_and_reported():
    """Torch's thread count is part of the result: the default as it is, a chosen one as chosen."""
    default = torch.get_num_threads()
    assert make_agent("dqn", num_envs=1, num_actions=6, device="cpu", buffer_cap=64).facts()["torch_threads"] == default
    try:
        agent = make_agent("dqn", num_envs=1, num_actions=6, device="cpu", buffer_cap=64, torch_threads=1)
        assert agent.facts()["torch_threads"] == 1
    finally:
        torch.set_num_threads(default)


def test_the_reference_updates_every_few_rounds():
    """One update in 4 rounds, counted from 0: with 8 envs one in 32 env-steps."""
    schedule = EveryRounds(train_freq=4, num_envs=8)
    assert [schedule.updates_due(number) for number in range(8)] == [1, 0, 0, 0, 1, 0, 0, 0]
    assert schedule.updates_per_env_step == 1 / 32


@pytest.mark.parametrize(
    ("num_envs", "due"), [(1, [0, 0, 0, 1, 0, 0, 0, 1]), (2, [0, 1] * 4), (8, [2] * 8), (6, [1, 2] * 4)]
)
def test_a_fixed_ratio_updates_once_in_4_env_steps(num_envs, due):
    """Whatever the env count."""
    schedule = FixedRatio(num_envs)
    assert due == [schedule.updates_due(number) for number in range(8)]
    assert schedule.updates_per_env_step == 0.25
