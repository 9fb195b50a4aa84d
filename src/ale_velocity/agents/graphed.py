"""The agents with the learner `graphed`: the eager agents' mathematics, replayed as CUDA graphs.

What it leaves out is launch overhead, allocation and waiting: acting, storing and updating are one launch each, of
kernels that torch.compile fused; batches cross the bus through one preallocated pinned buffer each way, the host waits
for the actions alone, and minibatches are drawn on the device.

All work is on one stream, in order, and between any two calls of `to_device`, or of `store`, a loop waits for
actions that were computed after the first: that is what makes it safe to fill a pinned buffer again.
"""

from __future__ import annotations

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

    `outputs` are its static results, overwritten by each replay. The function is called `warm_ups` times before.
    """

    def __init__(self, function: Callable[[], Any], warm_ups: int) -> None:
        side_stream = torch.cuda.Stream()
        side_stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side_stream):
            for _ in range(warm_ups):
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
    """Return Adam in one kernel, whose step count lies on the device, so that a graph can count on."""
    return torch.optim.Adam(network.parameters(), capturable=True, fused=True, **options)


class GraphedAgent(TorchAgent):
    """Acting, and the way of batches between host and device, for any agent that can `decide`."""

    def prepare(self) -> None:
        """Allocate all buffers, and have what is computed on batches compiled; both are of fixed shapes."""
        self._compiled_decide = torch.compile(self.decide, dynamic=False)
        self._loss = torch.compile(self.loss, dynamic=False)
        self._graphs: list[Graph] = []
        self._graphs_by_memory: dict[tuple[Any, ...], Graph] = {}
        self._host_observations = pinned((self.num_rows, *OBSERVATION_SHAPE), torch.uint8)
        self._host_actions = pinned((self.num_rows,), torch.int64)
        self._host_ends = pinned((2, self.num_rows), torch.float32)
        self._host_ids = pinned((self.num_rows,), torch.int64)
        # Arrays over the same memory: numpy fills a small one in a fraction of the time that torch needs.
        self._observations_array = self._host_observations.numpy()
        self._actions_array = self._host_actions.numpy()
        self._ends_array = self._host_ends.numpy()
        self._ids_array = self._host_ids.numpy()
        self._acted = torch.cuda.Event()
        shape = (NUM_SLOTS, self.num_rows, *OBSERVATION_SHAPE)
        self._slots = torch.zeros(shape, dtype=torch.uint8, device=self.device).unbind()
        self._current = 0
        self._decision: Any = None

    def capture(self, function: Callable[[], Any], warm_ups: int = WARM_UPS) -> Graph:
        """Capture a function, and count it."""
        graph = Graph(function, warm_ups)
        self._graphs.append(graph)
        return graph

    def replayed(self, function: Callable[..., Any], *memory: torch.Tensor, warm_ups: int = 0) -> Any:
        """Replay a function of tensors that stay where they are; it is captured when it first gets them."""
        key = (function, *(tensor.data_ptr() for tensor in memory))
        if key not in self._graphs_by_memory:
            self._graphs_by_memory[key] = self.capture(lambda: function(*memory), warm_ups)
        return self._graphs_by_memory[key]()

    def to_device(self, observations: Any) -> torch.Tensor:
        """Copy host observations into the next slot, without waiting; pinned tensors go there directly."""
        if isinstance(observations, torch.Tensor) and observations.is_pinned():
            source = observations
        else:
            np.copyto(self._observations_array, observations)
            source = self._host_observations
        self._current = (self._current + 1) % NUM_SLOTS
        newest = self._slots[self._current]
        newest.copy_(source, non_blocking=True)
        return newest

    def act(self, observations: torch.Tensor) -> Any:
        """Decide for the batch that came last; the decision stays until its slot is used again."""
        if observations is not self._slots[self._current]:
            raise VelocityError("a loop acts on another batch than the one that it brought last")
        self._decision = self.replayed(self._act, observations, warm_ups=WARM_UPS)
        self._acted.record()
        return self._decision

    def _act(self, observations: torch.Tensor) -> Any:
        with torch.no_grad():
            decision = self._compiled_decide(observations)
        actions = decision.actions if isinstance(decision, ppo.Decision) else decision
        self._host_actions.copy_(actions, non_blocking=True)
        return decision

    def to_host(self, values: Any) -> Any:
        """Return the newest decision's actions as soon as they are there, or any tensor; as a numpy array."""
        if values is self._decision:
            self._acted.synchronize()
            return self._actions_array
        return values.cpu().numpy()

    def keep_ends(self, rewards: Any, terminated: Any) -> None:
        """Fill the buffer of rewards and terminations, as float32."""
        self._ends_array[0] = np.asarray(rewards)  # tensors, from the torch_ops loop, too
        self._ends_array[1] = np.asarray(terminated)

    def kept_ends(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Bring rewards and terminations to the device in one copy."""
        rewards, terminated = self._host_ends.to(self.device, non_blocking=True).unbind()
        return rewards, terminated

    def ids_to_device(self, env_ids: torch.Tensor) -> torch.Tensor:
        """Bring pinned env ids to the device."""
        return env_ids.to(self.device, non_blocking=True)

    def swap_held(self, env_ids: Any, *columns: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """As the eager agent, in one launch."""
        self.hold(columns)
        self._ids_array[:] = env_ids
        return self.replayed(self._swap_held, *columns)

    def _swap_held(self, *columns: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return super().swap_held(self._host_ids, *columns)

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
        """Graphs compiled and captured so far."""
        return super().num_compiled + len(self._graphs)

    def facts(self) -> dict[str, Any]:
        """Return the agent's facts with the learner."""
        return {**super().facts(), "learner": "graphed"}


class GraphedReplay(dqn.Replay):
    """A replay whose position and size lie on the device too, so that adding to it and drawing from it are graphs.

    `size` is counted by whoever replays them.
    """

    def __init__(self, capacity: int, device: torch.device) -> None:
        super().__init__(capacity, device)
        self.device_size = torch.zeros((), dtype=torch.int64, device=device)
        self._device_position = torch.zeros((), dtype=torch.int64, device=device)

    def add(self, *transitions: torch.Tensor) -> None:
        """Add rows of (observations, actions, rewards, dones, next observations), overwriting the oldest."""
        num_rows = len(transitions[0])
        rows = (self._device_position + torch.arange(num_rows, device=self.actions.device)) % self.capacity
        for column, added in zip(self._columns(), transitions, strict=True):
            column.index_copy_(0, rows, added)
        self._device_position.add_(num_rows).remainder_(self.capacity)
        self.device_size.add_(num_rows).clamp_(max=self.capacity)


class GraphedDqnAgent(GraphedAgent, dqn.DqnAgent):
    """DQN; `minibatch_rows` are the replay's rows that the last update was made of."""

    def __init__(self, num_actions: int, device: torch.device, **options: Any) -> None:
        super().__init__(num_actions, device, **options)
        self.optimizer = capturable_adam(self.network, lr=dqn.LEARNING_RATE)
        self.minibatch_rows = torch.zeros(self.batch_size, dtype=torch.int64, device=device)
        self.replay: GraphedReplay = GraphedReplay(self.replay.capacity, device)
        self._update: Graph | None = None
        self.prepare()

    def store(
        self,
        observations: torch.Tensor,
        actions: torch.Tensor,
        rewards: Any,
        terminated: Any,
        next_observations: torch.Tensor,
        *,
        env_ids: Any = None,  # noqa: ARG002 (a transition stands for itself)
    ) -> None:
        """Put a batch of transitions into the replay."""
        self.keep_ends(rewards, terminated)
        self.replayed(self._add, observations, actions, next_observations)
        self.replay.size = min(self.replay.size + self.num_rows, self.replay.capacity)

    def _add(self, observations: torch.Tensor, actions: torch.Tensor, next_observations: torch.Tensor) -> None:
        self.replay.add(observations, actions, *self.kept_ends(), next_observations)

    def learn(self, iteration: int) -> None:
        """Make the updates that are due, once the replay holds a minibatch."""
        if self.replay.size < self.batch_size:
            return
        if self._update is None:
            self._update = self.capture_update(self._update_on_a_sample)
        for _ in range(self.schedule.updates_due(iteration)):
            self.last_loss = self._update()
            self.num_updates += 1

    def _update_on_a_sample(self) -> torch.Tensor:
        """Draw rows of the replay on the device, and update on them."""
        size = self.replay.device_size
        drawn = (torch.rand(self.batch_size, device=self.device) * size).long()
        torch.minimum(drawn, size - 1, out=self.minibatch_rows)  # rounding may reach the size
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
        self._num_filled = torch.zeros(1, dtype=torch.int64, device=device)
        self.prepare()

    def store(
        self,
        observations: torch.Tensor,
        actions: ppo.Decision,
        rewards: Any,
        terminated: Any,
        next_observations: torch.Tensor,
        *,
        env_ids: Any = None,
    ) -> None:
        """Add a batch of transitions to the rollout."""
        self.keep_ends(rewards, terminated)
        self._ids_array[:] = np.arange(self.num_envs) if env_ids is None else env_ids
        self.replayed(self._add, observations, *actions, next_observations)
        self.transitions.num_filled += 1

    def _add(self, observations: torch.Tensor, *columns: torch.Tensor) -> None:
        *decision, next_observations = columns
        ids = self.ids_to_device(self._host_ids)
        added = (observations, *decision, *self.kept_ends(), ids)
        for column, rows in zip(self.transitions.columns(), added, strict=True):
            column.index_copy_(0, self._num_filled, rows.unsqueeze(0))
        self._num_filled += 1
        self._newest[ids] = next_observations

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
        self._num_filled.zero_()

    def _update_on_rows(self, estimates: torch.Tensor) -> torch.Tensor:
        return self.update(*(column[self.minibatch_rows] for column in self.learning_columns(estimates)))
