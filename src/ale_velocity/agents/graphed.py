"""The agents with the learner `graphed`: the eager agents' mathematics, replayed as CUDA graphs.

What it leaves out is launch overhead, allocation and waiting: acting and updating are one launch each, batches
cross the bus through one preallocated pinned buffer each way, the host waits for the actions alone, and
minibatches are drawn on the device.

All work is on one stream, in order, and between any two calls of `to_device`, or of `store`, a loop waits for
actions that were computed after the first: that is what makes it safe to fill a pinned buffer again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ale_velocity.agents import dqn, ppo
from ale_velocity.agents.torch_agent import TorchAgent
from ale_velocity.envs import OBSERVATION_SHAPE
from ale_velocity.errors import VelocityError

if TYPE_CHECKING:
    from collections.abc import Callable

WARM_UPS = 3  # calls before a capture: cuDNN and cuBLAS choose and allocate in the first ones
# A batch is needed until the next one of its envs is stored. With two halves in flight four are alive at a time.
NUM_SLOTS = 4


class Graph:
    """A function without arguments, captured: a call replays what it launched, on the same memory.

    `outputs` are its static results, overwritten by each replay.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        side_stream = torch.cuda.Stream()
        side_stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side_stream):
            for _ in range(WARM_UPS):
                function()
        torch.cuda.current_stream().wait_stream(side_stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self.outputs = function()

    def __call__(self) -> Any:
        """Launch it and return the static outputs."""
        self._graph.replay()
        return self.outputs


def pinned(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return host memory that the device reads and writes by itself."""
    return torch.empty(shape, dtype=dtype, pin_memory=True)


def capturable_adam(network: torch.nn.Module, **options: float) -> torch.optim.Adam:
    """Return Adam whose step count lies on the device, so that a graph can count on."""
    return torch.optim.Adam(network.parameters(), capturable=True, **options)


@dataclass
class _Slot:
    """Static memory of one batch: observations, and the decision that the graph writes for them."""

    observations: torch.Tensor
    act: Graph
    decision: Any


class GraphedAgent(TorchAgent):
    """Acting, and the way of batches between host and device, for any agent that can `decide`."""

    def prepare(self) -> None:
        """Allocate all buffers and capture acting."""
        self._graphs: list[Graph] = []
        self._host_observations = pinned((self.num_rows, *OBSERVATION_SHAPE), torch.uint8)
        self._host_actions = pinned((self.num_rows,), torch.int64)
        self._host_ends = pinned((2, self.num_rows), torch.float32)
        # Arrays over the same memory: numpy fills a small one in a fraction of the time that torch needs.
        self._observations_array = self._host_observations.numpy()
        self._actions_array = self._host_actions.numpy()
        self._ends_array = self._host_ends.numpy()
        self._ends = torch.empty_like(self._host_ends, device=self.device)
        self._acted = torch.cuda.Event()
        self._slots = [self._make_slot() for _ in range(NUM_SLOTS)]
        self._current = 0

    def capture(self, function: Callable[[], Any]) -> Graph:
        """Capture a function, and count it."""
        graph = Graph(function)
        self._graphs.append(graph)
        return graph

    def _make_slot(self) -> _Slot:
        observations = torch.zeros((self.num_rows, *OBSERVATION_SHAPE), dtype=torch.uint8, device=self.device)

        def act() -> Any:
            with torch.no_grad():
                decision = self.decide(observations)
            actions = decision.actions if isinstance(decision, ppo.Decision) else decision
            self._host_actions.copy_(actions, non_blocking=True)
            return decision

        graph = self.capture(act)
        return _Slot(observations, graph, graph.outputs)

    def to_device(self, observations: Any) -> torch.Tensor:
        """Copy host observations into the next slot, without waiting; pinned tensors go there directly."""
        if isinstance(observations, torch.Tensor) and observations.is_pinned():
            source = observations
        else:
            np.copyto(self._observations_array, observations)
            source = self._host_observations
        self._current = (self._current + 1) % NUM_SLOTS
        slot = self._slots[self._current]
        slot.observations.copy_(source, non_blocking=True)
        return slot.observations

    def act(self, observations: torch.Tensor) -> Any:
        """Decide for the batch that came last; the decision lies in its slot."""
        slot = self._slots[self._current]
        if observations is not slot.observations:
            raise VelocityError("a loop acts on another batch than the one that it brought last")
        slot.act()
        self._acted.record()
        return slot.decision

    def to_host(self, values: Any) -> Any:
        """Return the newest decision's actions as soon as they are there, or any tensor; as a numpy array."""
        if values is self._slots[self._current].decision:
            self._acted.synchronize()
            return self._actions_array
        return values.cpu().numpy()

    def ends_to_device(self, rewards: Any, terminated: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Bring rewards and terminations to the device in one copy, as float32."""
        self._ends_array[0] = np.asarray(rewards)  # tensors, from the torch_ops loop, too
        self._ends_array[1] = np.asarray(terminated)
        self._ends.copy_(self._host_ends, non_blocking=True)
        return self._ends[0], self._ends[1]

    def ids_to_device(self, env_ids: Any) -> torch.Tensor:
        """Bring env ids to the device; a copy from pageable memory is staged before it returns."""
        return torch.as_tensor(env_ids).to(self.device, non_blocking=True).long()

    def capture_update(self, update: Callable[[], torch.Tensor]) -> Graph:
        """Capture an update, and put weights and optimizer back to where they were before the warm-up calls."""
        weights = [parameter.detach().clone() for parameter in self.network.parameters()]
        graph = self.capture(update)
        with torch.no_grad():
            for parameter, weight in zip(self.network.parameters(), weights, strict=True):
                parameter.copy_(weight)
            for state in self.optimizer.state.values():
                for value in state.values():
                    value.zero_()  # Adam starts from zeros
        return graph

    @property
    def num_compiled(self) -> int:
        """Graphs captured so far."""
        return len(self._graphs)

    def facts(self) -> dict[str, Any]:
        """Return the agent's facts with the learner."""
        return {**super().facts(), "learner": "graphed"}


class GraphedDqnAgent(GraphedAgent, dqn.DqnAgent):
    """DQN; `minibatch_rows` are the replay's rows that the last update was made of."""

    def __init__(self, num_actions: int, device: torch.device, **options: Any) -> None:
        super().__init__(num_actions, device, **options)
        self.optimizer = capturable_adam(self.network, lr=dqn.LEARNING_RATE)
        self.minibatch_rows = torch.zeros(self.batch_size, dtype=torch.int64, device=device)
        self._replay_size = torch.zeros((), dtype=torch.int64, device=device)
        self._update: Graph | None = None
        self.prepare()

    def learn(self, iteration: int) -> None:
        """Make the updates that are due, once the replay holds a minibatch."""
        if self.replay.size < self.batch_size:
            return
        if self._update is None or self.replay.size < self.replay.capacity:
            self._replay_size.fill_(self.replay.size)
        if self._update is None:
            self._update = self.capture_update(self._update_on_a_sample)
        for _ in range(self.schedule.updates_due(iteration)):
            self.last_loss = self._update()
            self.num_updates += 1

    def _update_on_a_sample(self) -> torch.Tensor:
        """Draw rows of the replay on the device, and update on them."""
        drawn = (torch.rand(self.batch_size, device=self.device) * self._replay_size).long()
        torch.minimum(drawn, self._replay_size - 1, out=self.minibatch_rows)  # rounding may reach the size
        return self.update(*self.replay.rows(self.minibatch_rows))


class GraphedPpoAgent(GraphedAgent, ppo.PpoAgent):
    """PPO; the steps of a rollout's minibatches are replays of one graph on rows drawn on the device."""

    def __init__(self, num_actions: int, device: torch.device, **options: Any) -> None:
        super().__init__(num_actions, device, **options)
        self.optimizer = capturable_adam(self.network, lr=ppo.LEARNING_RATE, eps=ppo.ADAM_EPSILON)
        num_transitions = ppo.ROLLOUT * self.num_envs
        self.minibatch_rows = torch.zeros(num_transitions // ppo.MINIBATCHES, dtype=torch.int64, device=device)
        self._estimate: Graph | None = None
        self._update: Graph | None = None
        self.prepare()

    def learn_from_rollout(self) -> None:
        """Estimate advantages, then take a step on each minibatch of each epoch, in a new order each time."""
        if self._estimate is None or self._update is None:
            estimate = self.capture(self.estimate_advantages)
            self._estimate, self._update = estimate, self.capture_update(lambda: self._update_on_rows(estimate.outputs))
        self._estimate()
        for _ in range(ppo.EPOCHS):
            order = torch.randperm(ppo.ROLLOUT * self.num_envs, device=self.device)
            for rows in order.chunk(ppo.MINIBATCHES):
                self.minibatch_rows.copy_(rows)
                self.last_loss = self._update()
                self.num_updates += 1
        self.transitions.num_filled = 0

    def _update_on_rows(self, estimates: torch.Tensor) -> torch.Tensor:
        return self.update(*(column[self.minibatch_rows] for column in self.learning_columns(estimates)))
