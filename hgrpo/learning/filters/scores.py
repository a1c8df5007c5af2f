"""The score of a group: how far its returns, or other numbers of its trajectories, spread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hgrpo.learning.filters.settings import Score


@dataclass(frozen=True)
class Measures:
    """What a group's score is computed from, in the order of its trajectories.

    Attributes:
        returns: float [K].
        successes: bool or float [K].
        lengths: int [K], numbers of sampled tokens.
        entropies: float [K], each trajectory's mean over its sampled tokens of the policy's
            entropy, in nats. Only the scores of entropy read it.
    """

    returns: np.ndarray
    successes: np.ndarray
    lengths: np.ndarray
    entropies: np.ndarray | None = None


def sample_variance(values: np.ndarray) -> float:
    """The sample's variance (ddof 1) of values [K]; 0 for one value, and 0 for equal values."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2 or np.all(values == values[0]):
        return 0.0
    return float(values.var(ddof=1))


def sample_deviation(values: np.ndarray) -> float:
    """The root of `sample_variance`: what RAGEN's code calls a group's reward variance."""
    return float(np.sqrt(sample_variance(values)))


def mean_deviation(returns: Sequence[np.ndarray]) -> float:
    """The mean of `sample_deviation` over groups of returns, G arrays [K]; 0 without groups."""
    return float(np.mean([sample_deviation(row) for row in returns])) if len(returns) else 0.0


_SCORES: dict[Score, Callable[[Measures], float]] = {
    "deviation": lambda group: sample_deviation(group.returns),
    "variance": lambda group: sample_variance(group.returns),
    "success_variance": lambda group: sample_variance(group.successes),
    "mean": lambda group: float(np.mean(group.returns)),
    "sum": lambda group: float(np.sum(group.returns)),
    "entropy": lambda group: float(np.mean(_entropies(group))),
    "entropy_deviation": lambda group: sample_deviation(_entropies(group)),
    "length": lambda group: float(np.mean(group.lengths)),
}


def group_scores(groups: Sequence[Measures], score: Score) -> np.ndarray:
    """The scores of groups, float64 [G]; spreads are the sample's (ddof 1), and 0 at K = 1.

    Raises:
        ValueError: the score needs entropies that are not there.
    """
    return np.array([_SCORES[score](group) for group in groups], dtype=np.float64)


def _entropies(group: Measures) -> np.ndarray:
    if group.entropies is None:
        raise ValueError("a score of entropy needs the entropies of the policy's tokens")
    return group.entropies
