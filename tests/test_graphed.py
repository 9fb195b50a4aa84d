"""The graphed learner computes what the eager one does: on CUDA as it is, elsewhere with graphs played by calls."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ale_velocity.agents import dqn, graphed, make_agent, ppo
from ale_velocity.errors import NotAvailableError
from ale_velocity.loops import LOOPS
from batched_fakes import NUM_ACTIONS
from test_same_transitions import open_fake

NUM_ENVS = 4
HAS_CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if HAS_CUDA else "cpu")
# Kernels are chosen for a graph's shapes and may round otherwise; differences grow with each update.
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}


class PlayedGraph:
    """What a CUDA graph does, without one: each call runs the function into the same outputs."""

    def __init__(self, function, warm_ups):
        self.function = function
        self.outputs = None
        for _ in range(warm_ups):
            self.outputs = function()

    def __call__(self):
        outputs = self.function()
        if self.outputs is None:
            self.outputs = outputs
            return outputs
        columns = [(self.outputs, outputs)] if torch.is_tensor(outputs) else zip(self.outputs, outputs, strict=True)
        for kept, new in columns:
            kept.copy_(new)
        return self.outputs


class PlayedEvent:
    """Work that is done when it is asked for needs no waiting."""

    def record(self):
        pass

    def synchronize(self):
        pass


@pytest.fixture(autouse=True)
def _play_graphs(monkeypatch):
    really_compile = torch.compile

    def compile_for_graphs(function, mode=None, **options):
        """The eager policy's mode makes graphs of its own: it stays a plain call, and so does all without CUDA."""
        return really_compile(function, **options) if HAS_CUDA and mode is None else function

    monkeypatch.setattr(torch, "compile", compile_for_graphs)
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: None)
    if not HAS_CUDA:
        monkeypatch.setattr(graphed, "Graph", PlayedGraph)
        monkeypatch.setattr(torch.cuda, "Event", PlayedEvent)
        monkeypatch.setattr(graphed, "pinned", lambda shape, dtype: torch.empty(shape, dtype=dtype))
        monkeypatch.setattr(
            graphed, "capturable_adam", lambda network, **options: torch.optim.Adam(network.parameters(), **options)
        )


def make(agent_class, loop="step", **options):
    kind = LOOPS[loop]
    rows = {"num_envs": NUM_ENVS, "num_rows": NUM_ENVS // kind.batches}
    agent = agent_class(NUM_ACTIONS, DEVICE, **rows, **options)
    return kind(open_fake(kind, NUM_ENVS, episode_length=20), agent, seed=1), agent


def make_dqn(agent_class, loop="step"):
    schedule = dqn.EveryRounds(4, NUM_ENVS)
    return make(agent_class, loop, schedule=schedule, batch_size=32, buffer_cap=64)


@pytest.mark.parametrize("loop", LOOPS)
def test_graphed_dqn_stores_what_eager_dqn_stores(loop):
    """With the weights held, the replay's rows are equal after it has wrapped around, whatever the loop."""
    replays = []
    for agent_class in (dqn.DqnAgent, graphed.GraphedDqnAgent):
        running, agent = make_dqn(agent_class, loop)
        agent.learn = lambda _: None
        running.run(20 * LOOPS[loop].batches)
        replays.append(agent.replay)
    eager, replay = replays
    for column in ("observations", "actions", "rewards", "dones", "next_observations"):
        assert torch.equal(getattr(eager, column), getattr(replay, column)), column


def test_graphed_dqn_losses_are_those_of_eager_updates():
    """Ten updates on the same minibatches, from the same weights: the warm-up calls of a capture leave no trace."""
    _, eager = make_dqn(dqn.DqnAgent)
    running, agent = make_dqn(graphed.GraphedDqnAgent)
    agent.learn, learn = (lambda _: None), agent.learn
    running.run(20)
    for _ in range(10):
        learn(0)
        expected = eager.update(*agent.replay.rows(agent.minibatch_rows))
        torch.testing.assert_close(agent.last_loss, expected, **TOLERANCE)
    assert agent.num_updates == 10
    agent.check()


def test_graphed_dqn_draws_from_the_filled_part():
    """Sampling on the device follows the replay as it fills, and draws anew each time."""
    running, agent = make_dqn(graphed.GraphedDqnAgent)
    running.run(9)  # 36 of 64 rows
    drawn = []
    for _ in range(20):
        agent.learn(0)
        drawn.append(agent.minibatch_rows.tolist())
    assert set(range(36)) == {row for rows in drawn for row in rows}
    assert len(set(map(tuple, drawn))) == 20


def test_graphed_ppo_losses_are_those_of_eager_updates(monkeypatch):
    """A rollout's advantages and all its minibatch losses are equal on the same rows."""
    _, eager = make(ppo.PpoAgent)
    running, agent = make(graphed.GraphedPpoAgent)
    agent.learn_from_rollout, learn = (lambda: None), agent.learn_from_rollout
    running.run(ppo.ROLLOUT)
    eager.transitions, eager._newest = agent.transitions, agent._newest
    estimates = eager.estimate_advantages()
    torch.testing.assert_close(agent.estimate_advantages(), estimates, **TOLERANCE)
    losses = []
    monkeypatch.setattr(ppo, "EPOCHS", 1)
    capture_update = agent.capture_update

    def capture_and_compare(update):
        graph = capture_update(update)

        def replayed():
            loss = graph().clone()
            columns = eager.learning_columns(estimates)
            losses.append((loss, eager.update(*(column[agent.minibatch_rows] for column in columns))))
            return loss

        return replayed

    agent.capture_update = capture_and_compare
    learn()
    assert ppo.MINIBATCHES == len(losses) == agent.num_updates
    for loss, expected in losses:
        torch.testing.assert_close(loss, expected, **TOLERANCE)
    agent.check()


@pytest.mark.parametrize("loop", ["step", "half_batches", "quarter_batches", "ping_pong"])
def test_graphed_ppo_stores_what_eager_ppo_stores(loop):
    """With the weights held, a rollout is equal in every column, whatever the loop."""
    rollouts = []
    for agent_class in (ppo.PpoAgent, graphed.GraphedPpoAgent):
        running, agent = make(agent_class, loop)
        agent.learn = lambda _: None
        running.run(16 * LOOPS[loop].batches)
        rollouts.append(agent.transitions)
    eager, rollout = rollouts
    filled = slice(rollout.num_filled)
    for column in ("observations", "actions", "rewards", "dones", "env_ids"):
        assert torch.equal(getattr(eager, column)[filled], getattr(rollout, column)[filled]), column
    for column in ("log_probs", "values"):
        torch.testing.assert_close(getattr(rollout, column)[filled], getattr(eager, column)[filled], **TOLERANCE)


def test_actions_kept_from_a_batch_outlive_the_next():
    """A replay of the next batch's graph leaves the decision of the last one alone."""
    _, agent = make_dqn(graphed.GraphedDqnAgent)
    observations = np.random.default_rng(1).integers(256, size=(2, NUM_ENVS, 4, 84, 84), dtype=np.uint8)
    first = agent.act(agent.to_device(observations[0]))
    kept = first.clone()
    second = agent.act(agent.to_device(observations[1]))
    assert torch.equal(first, kept)
    assert second.tolist() == agent.to_host(second).tolist()
    assert second.tolist() == agent.network(torch.from_numpy(observations[1]).to(DEVICE)).argmax(dim=1).tolist()


def test_acting_uses_the_weights_of_its_moment():
    """A batch brought before an update is decided on after it, as the blocking loop has it."""
    _, agent = make_dqn(graphed.GraphedDqnAgent)
    observations = np.random.default_rng(1).integers(256, size=(NUM_ENVS, 4, 84, 84), dtype=np.uint8)
    agent.act(agent.to_device(observations))
    for favourite in (0, NUM_ACTIONS - 1):
        brought = agent.to_device(observations)
        with torch.no_grad():
            agent.network.layers[-1].bias.zero_()[favourite] = 1e3
        assert agent.to_host(agent.act(brought)).tolist() == [favourite] * NUM_ENVS


@pytest.mark.parametrize("agent", ["dqn", "ppo"])
def test_without_cuda_the_graphed_learner_is_not_available(agent):
    """Asked for on a CPU, the cell is n/a with the reason, never an eager number under that name."""
    with pytest.raises(NotAvailableError, match="the graphed learner needs a CUDA device"):
        make_agent(agent, num_envs=4, num_actions=6, device="cpu", learner="graphed")


@pytest.mark.skipif(not HAS_CUDA, reason="needs a CUDA device")
def test_graphed_agents_use_one_torch_thread_unless_told():
    """More would fight the emulator's threads."""
    threads = torch.get_num_threads()
    try:
        agent = make_agent("dqn", num_envs=4, num_actions=6, device="cuda", learner="graphed", buffer_cap=64)
        assert agent.facts()["torch_threads"] == 1
    finally:
        torch.set_num_threads(threads)
