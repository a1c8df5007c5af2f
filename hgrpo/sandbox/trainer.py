"""Base classes of trainers: the loop over steps, and the log."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from hgrpo.sandbox.learner import Learner
from hgrpo.sandbox.policies import Inputs, Policy, Sampled
from hgrpo.sandbox.run_settings import ArmSettings

# One row of the log of one seed.
Row = dict[str, float | int | str]
# Column of the log -> values [S] per seed.
Columns = dict[str, Tensor]


class ArmTrainer(ABC):
    """Trains one arm. All of its seeds are batched along the first axis of tensors.

    `rows` is the log, with one row per evaluation and seed. `learners` maps names to learners.
    """

    def __init__(self, settings: ArmSettings):
        self.settings = settings
        self.learners: dict[str, Learner] = {}
        self.step = 0
        self.rows: list[Row] = []

    @abstractmethod
    def take_step(self) -> None:
        """Make all updates of one training step. If an evaluation is due, evaluate first."""

    @abstractmethod
    def examine(self) -> Columns:
        """Evaluate; return scores of the policies and cumulative costs."""

    @abstractmethod
    def head(self) -> dict[str, float | int | str]:
        """Columns that are equal in all rows of the current step, such as step and method."""

    def run(self, advance: Callable[[], object] = lambda: None) -> list[Row]:
        """Train all steps, and evaluate at the end; `advance` is called after each step.

        Raises:
            TrainingError: a loss or a gradient is not finite.
        """
        while self.step < self.settings.num_steps:
            self.take_step()
            advance()
        return self.finish()

    def finish(self) -> list[Row]:
        """Evaluate after the last step; return the log."""
        self.log(self.examine())
        return self.rows

    def log(self, columns: Mapping[str, Tensor]) -> None:
        """Add one row per seed, with `head`, the seed, and the seed's values in `columns` [S]."""
        head, values = self.head(), {name: column.tolist() for name, column in columns.items()}
        self.rows += [
            {**head, "seed": seed, **{name: column[index] for name, column in values.items()}}
            for index, seed in enumerate(self.settings.seeds)
        ]

    def spent(self, counts: Mapping[str, int]) -> Columns:
        """Convert counts to columns of the log; each count is equal for all seeds."""
        return {name: torch.full((len(self.settings.seeds),), n) for name, n in counts.items()}


class PolicyTrainer(ArmTrainer):
    """Trains one policy; each seed's gradient is clipped to the norm `LARGEST_NORM`."""

    LARGEST_NORM = 1.0
    policy: Policy

    def begin(self, first: Tensor, lr: float) -> None:
        """Start training from the weights `first` [S, P]."""
        self.learners["policy"] = Learner(first, lr, self.LARGEST_NORM, self.settings.seeds)

    @property
    def learner(self) -> Learner:
        return self.learners["policy"]

    @property
    def weights(self) -> Tensor:
        return self.learner.weights


@dataclass
class ReadsOnce:
    """A policy that caches the result of `read` for a batch's inputs.

    The first update on a batch often uses the inputs and weights with which the batch was sampled.
    If a trainer samples with the weights `Learner.leaf`, the update reuses the result. Results for
    other weights are not cached, because their graph may be freed before the next use.
    """

    policy: Policy
    learner: Learner
    # Weights, inputs, and the result of `read` with its graph.
    _last: tuple[Tensor, Inputs, Inputs] | None = field(default=None, init=False)

    def read(self, weights: Tensor, inputs: Inputs) -> Inputs:
        """Read inputs, or return the cached reading."""
        if weights is not self.learner.leaf:
            return self.policy.read(weights, inputs)
        if self._last is None or self._last[0] is not weights or self._last[1] is not inputs:
            with torch.enable_grad():
                self._last = weights, inputs, self.policy.read(weights, inputs)
        return self._last[2]

    def table(self, weights: Tensor, inputs: Inputs, actions: Tensor) -> Tensor:
        return self.policy.table(weights, self.read(weights, inputs), actions)

    def listed(self, weights: Tensor, inputs: Inputs) -> Sampled:
        return self.policy.listed(weights, self.read(weights, inputs))

    def sample(self, weights: Tensor, inputs: Inputs, draws: Tensor) -> Sampled:
        return self.policy.sample(weights, self.read(weights, inputs), draws)

    def greedy(self, weights: Tensor, inputs: Inputs) -> Sampled:
        return self.policy.greedy(weights, self.read(weights, inputs))
