"""The base of all trainers: the loop over steps, and the log."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from hgrpo.sandbox.learner import Learner
from hgrpo.sandbox.policies import Inputs, Policy, Sampled
from hgrpo.sandbox.run_settings import ArmSettings

# One row of a log, of one seed.
Row = dict[str, float | int | str]
# Numbers of each seed by column of the log, [S] each.
Columns = dict[str, Tensor]


class ArmTrainer(ABC):
    """Trains one arm with all its seeds in one tensor program.

    `rows` is its log, one row for each evaluation and seed. `learners` has a learner by name.
    """

    def __init__(self, settings: ArmSettings):
        self.settings = settings
        self.learners: dict[str, Learner] = {}
        self.step = 0
        self.rows: list[Row] = []

    @abstractmethod
    def take_step(self) -> None:
        """All updates of one training step; evaluate before, if it is time."""

    @abstractmethod
    def examine(self) -> Columns:
        """Columns of an evaluation: scores of the policies, and costs so far."""

    @abstractmethod
    def head(self) -> dict[str, float | int | str]:
        """Columns of each row of this step's log, beside its seed and its numbers."""

    def run(self, advance: Callable[[], object] = lambda: None) -> list[Row]:
        """Train all steps, and evaluate once more; `advance` is called after each step.

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
        """Add a row for each seed: `head`, the seed, and its numbers out of `columns` [S]."""
        head, values = self.head(), {name: column.tolist() for name, column in columns.items()}
        self.rows += [
            {**head, "seed": seed, **{name: column[index] for name, column in values.items()}}
            for index, seed in enumerate(self.settings.seeds)
        ]

    def spent(self, counts: Mapping[str, int]) -> Columns:
        """Counts that are the same for all seeds, as columns of the log."""
        return {name: torch.full((len(self.settings.seeds),), n) for name, n in counts.items()}


class PolicyTrainer(ArmTrainer):
    """Trains one policy; the gradient of each seed is clipped to the norm `LARGEST_NORM`."""

    LARGEST_NORM = 1.0
    policy: Policy

    def begin(self, first: Tensor, lr: float) -> None:
        """Learn from the weights `first` [S, P] on."""
        self.learners["policy"] = Learner(first, lr, self.LARGEST_NORM, self.settings.seeds)

    @property
    def learner(self) -> Learner:
        """The policy's learner."""
        return self.learners["policy"]

    @property
    def weights(self) -> Tensor:
        """The policy's weights, [S, P]."""
        return self.learner.weights


@dataclass
class ReadsOnce:
    """A policy that reads the inputs of a batch once under the weights of the next update.

    The first update on a batch often has the inputs and the weights that sampled it. A trainer that
    samples with `Learner.leaf` lets that update use the reading of the sampling. Readings under
    other weights are not stored: their graph may be freed before the next use.
    """

    policy: Policy
    learner: Learner
    # Weights, inputs, and the reading with its gradient.
    _last: tuple[Tensor, Inputs, Inputs] | None = field(default=None, init=False)

    def read(self, weights: Tensor, inputs: Inputs) -> Inputs:
        """Inputs as the policy reads them."""
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
