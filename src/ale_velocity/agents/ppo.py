"""PPO with the eager learner: long rollouts, each learnt from in a few epochs of large minibatches.

Constants are those of standard Atari PPO (Schulman et al. 2017; workload.md), without annealing, and with the
value loss unclipped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from ale_velocity.agents.nature import FEATURES, nature_layers
from ale_velocity.agents.torch_agent import SEED, TorchAgent
from ale_velocity.envs import OBSERVATION_SHAPE

ROLLOUT = 128  # rounds
EPOCHS = 4
MINIBATCHES = 4  # an epoch
GAMMA = 0.99
GAE_LAMBDA = 0.95
CLIP = 0.1
ENTROPY_COEFFICIENT = 0.01
VALUE_COEFFICIENT = 0.5
MAX_GRADIENT_NORM = 0.5
LEARNING_RATE = 2.5e-4
ADAM_EPSILON = 1e-5
ADVANTAGE_EPSILON = 1e-8  # keeps the normalisation of equal advantages finite


class ActorCritic(nn.Module):
    """The Nature trunk with two heads: uint8 `(rows, 4, 84, 84)` to logits `(rows, num_actions)`, values `(rows,)`."""

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(*nature_layers())
        self.policy = nn.Linear(FEATURES, num_actions)
        self.value = nn.Linear(FEATURES, 1)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scale pixels to [0, 1] and return logits and values."""
        features = self.trunk(observations / 255)
        return self.policy(features), self.value(features).squeeze(1)


class Decision(NamedTuple):
    """What was decided for a batch, on the device: actions int64, their log probabilities and values float32."""

    actions: torch.Tensor
    log_probs: torch.Tensor
    values: torch.Tensor


class Rollout:
    """The transitions of one rollout on the device: `num_batches` batches of `num_rows`, filled in order."""

    def __init__(self, num_batches: int, num_rows: int, device: torch.device) -> None:
        shape = (num_batches, num_rows)
        self.observations = torch.empty((*shape, *OBSERVATION_SHAPE), dtype=torch.uint8, device=device)
        self.actions = torch.empty(shape, dtype=torch.int64, device=device)
        self.log_probs = torch.empty(shape, dtype=torch.float32, device=device)
        self.values = torch.empty(shape, dtype=torch.float32, device=device)
        self.rewards = torch.empty(shape, dtype=torch.float32, device=device)
        self.dones = torch.empty(shape, dtype=torch.float32, device=device)
        self.env_ids = torch.empty(shape, dtype=torch.int64, device=device)
        self.num_filled = 0

    def add(self, *columns: torch.Tensor) -> None:
        """Add a batch of (observations, actions, log probabilities, values, rewards, dones, env ids)."""
        for column, rows in zip(self.columns(), columns, strict=True):
            column[self.num_filled] = rows
        self.num_filled += 1

    def columns(self) -> tuple[torch.Tensor, ...]:
        """Return all columns, in the order of `add`."""
        return (
            self.observations,
            self.actions,
            self.log_probs,
            self.values,
            self.rewards,
            self.dones,
            self.env_ids,
        )


def advantages(
    rewards: torch.Tensor, dones: torch.Tensor, values: torch.Tensor, env_ids: torch.Tensor, last_values: torch.Tensor
) -> torch.Tensor:
    """Return generalised advantage estimates, `(num_batches, num_rows)` like the first four arguments.

    Each row is followed by the next later row of the same env, the last one by `last_values[env]`, `(num_envs,)`;
    so batches may hold any envs. `dones` are 1.0 where an episode ended with that row, and nothing follows.
    """
    estimates = torch.empty_like(rewards)
    next_values = last_values.clone()
    next_estimates = torch.zeros_like(last_values)
    for batch in reversed(range(len(rewards))):
        ids = env_ids[batch]
        going_on = 1 - dones[batch]
        errors = rewards[batch] + GAMMA * going_on * next_values[ids] - values[batch]
        estimates[batch] = errors + GAMMA * GAE_LAMBDA * going_on * next_estimates[ids]
        next_values[ids] = values[batch]
        next_estimates[ids] = estimates[batch]
    return estimates


def objective(
    logits: torch.Tensor,
    values: torch.Tensor,
    *,
    actions: torch.Tensor,
    old_log_probs: torch.Tensor,
    estimates: torch.Tensor,
    returns: torch.Tensor,
) -> torch.Tensor:
    """Return the clipped objective of a minibatch, to be minimised: policy, entropy and value, all means over rows.

    `estimates` are normalised here, over the minibatch.
    """
    all_log_probs = functional.log_softmax(logits, dim=1)
    log_probs = all_log_probs.gather(1, actions.unsqueeze(1)).squeeze(1)
    entropy = -(all_log_probs.exp() * all_log_probs).sum(dim=1).mean()
    normalised = (estimates - estimates.mean()) / (estimates.std() + ADVANTAGE_EPSILON)
    ratios = (log_probs - old_log_probs).exp()
    gains = torch.min(normalised * ratios, normalised * ratios.clamp(1 - CLIP, 1 + CLIP)).mean()
    value_loss = 0.5 * (values - returns).square().mean()
    return -gains - ENTROPY_COEFFICIENT * entropy + VALUE_COEFFICIENT * value_loss


class PpoAgent(TorchAgent):
    """Greedy acting through torch.compile; after each rollout, eager updates on all of it.

    Actions are argmax, as the other agents' are, so that all loops see the same work.
    """

    rollout = ROLLOUT
    max_gradient_norm = MAX_GRADIENT_NORM

    def __init__(self, num_actions: int, device: torch.device, *, num_envs: int, num_rows: int) -> None:
        torch.manual_seed(SEED)
        super().__init__(ActorCritic(num_actions), device, num_envs, num_rows)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=LEARNING_RATE, eps=ADAM_EPSILON)
        self.transitions = Rollout(ROLLOUT * num_envs // num_rows, num_rows, device)
        self._newest = torch.zeros((num_envs, *OBSERVATION_SHAPE), dtype=torch.uint8, device=device)
        self._all_ids = torch.arange(num_envs, device=device)
        self._policy = torch.compile(self.decide, mode="reduce-overhead")

    def decide(self, observations: torch.Tensor) -> Decision:
        """Return the greedy actions with their log probabilities and values."""
        logits, values = self.network(observations)
        log_probs, actions = functional.log_softmax(logits, dim=1).max(dim=1)
        return Decision(actions, log_probs, values)

    @torch.no_grad()
    def act(self, observations: torch.Tensor) -> Decision:
        """Return the greedy actions with log probabilities and values, cloned out of the graph's outputs."""
        torch.compiler.cudagraph_mark_step_begin()
        return Decision(*(output.clone() for output in self._policy(observations)))

    def to_host(self, values: torch.Tensor | Decision) -> Any:
        """Return a tensor, or the actions of a decision, as a numpy array, which waits for it."""
        return super().to_host(values.actions if isinstance(values, Decision) else values)

    def exchange(self, env_ids: Any, observations: torch.Tensor, actions: Decision) -> tuple[torch.Tensor, Decision]:
        """Keep the newest observations and decisions of some envs; return those they replace."""
        previous_observations, *decision = self.swap_held(env_ids, observations, *actions)
        return previous_observations, Decision(*decision)

    def store(
        self,
        observations: torch.Tensor,
        actions: Decision,
        rewards: Any,
        terminated: Any,
        next_observations: torch.Tensor,
        *,
        env_ids: Any = None,
    ) -> None:
        """Add a batch of transitions to the rollout."""
        ids = self._all_ids if env_ids is None else self.ids_to_device(env_ids)
        self.transitions.add(observations, *actions, *self.ends_to_device(rewards, terminated), ids)
        self._newest[ids] = next_observations

    def learn(self, iteration: int) -> None:
        """Learn from the rollout after the last round of it."""
        if (iteration + 1) % ROLLOUT == 0:
            self.learn_from_rollout()

    def learn_from_rollout(self) -> None:
        """Estimate advantages, then take a step on each minibatch of each epoch, in a new order each time."""
        columns = self.learning_columns(self.estimate_advantages())
        for _ in range(EPOCHS):
            order = torch.randperm(ROLLOUT * self.num_envs, device=self.device)
            for rows in order.chunk(MINIBATCHES):
                self.last_loss = self.update(*(column[rows] for column in columns))
                self.num_updates += 1
        self.transitions.num_filled = 0

    def learning_columns(self, estimates: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return observations, actions, log probabilities, estimates and returns, one row a transition."""
        rollout = self.transitions
        return (
            rollout.observations.flatten(0, 1),
            rollout.actions.flatten(),
            rollout.log_probs.flatten(),
            estimates.flatten(),
            (estimates + rollout.values).flatten(),
        )

    @torch.no_grad()
    def estimate_advantages(self) -> torch.Tensor:
        """Return the advantages of the rollout, its last rows followed by the values of the newest observations."""
        rollout = self.transitions
        _, last_values = self.network(self._newest)
        return advantages(rollout.rewards, rollout.dones, rollout.values, rollout.env_ids, last_values)

    def loss(
        self,
        observations: torch.Tensor,
        actions: torch.Tensor,
        log_probs: torch.Tensor,
        estimates: torch.Tensor,
        returns: torch.Tensor,
    ) -> torch.Tensor:
        """Return the objective of a minibatch."""
        logits, values = self.network(observations)
        return objective(logits, values, actions=actions, old_log_probs=log_probs, estimates=estimates, returns=returns)

    @property
    def updates_per_env_step(self) -> float:
        """Minibatch steps a rollout, over its env-steps."""
        return EPOCHS * MINIBATCHES / (ROLLOUT * self.num_envs)

    def facts(self) -> dict[str, Any]:
        """Return device, threads and the shape of the work."""
        return {**super().facts(), "rollout": ROLLOUT, "epochs": EPOCHS, "minibatches": MINIBATCHES}
