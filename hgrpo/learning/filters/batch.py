"""The filter, applied to a batch of groups."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hgrpo.learning.filters.diagnostics import filter_row
from hgrpo.learning.filters.groups import is_zero, select_groups
from hgrpo.learning.filters.scores import Measures, group_scores
from hgrpo.learning.filters.settings import FilterConfig, LossScaling
from hgrpo.learning.filters.trajectories import kept_groups, select_trajectories


@dataclass(frozen=True)
class Filtered:
    """What the filter says of a batch.

    Attributes:
        scores: float64 [G].
        trajectories: G arrays bool [K], whether each trajectory is kept.
        weights: float64 [G], factors of the groups' advantages: soft weights and loss scaling. 0
            for groups of which nothing is kept.
        row: entries of the step's log row, see `filter_row`.
    """

    scores: np.ndarray
    trajectories: list[np.ndarray]
    weights: np.ndarray
    row: dict[str, float | None]

    @property
    def groups(self) -> np.ndarray:
        """bool [G], whether something of each group is kept."""
        return kept_groups(self.trajectories)

    @property
    def empty(self) -> bool:
        """Whether nothing is left to learn from."""
        return not np.any(self.weights)


def filter_batch(groups: Sequence[Measures], config: FilterConfig) -> Filtered:
    """Apply the filter to a batch of groups.

    Raises:
        ValueError: a score needs entropies that are not there.
    """
    scores = group_scores(groups, config.score)
    returns = [group.returns for group in groups]
    kept = select_trajectories(returns, select_groups(scores, config), config)
    left = np.concatenate(kept) if kept else np.zeros(0, bool)
    weights = kept_groups(kept) * loss_factor(config.loss_scaling, int(left.sum()), left.size)
    if config.soft:
        weights = soft_weights(scores, config.zero_tolerance)
    return Filtered(scores, kept, weights, filter_row(scores, kept, weights, config))


def soft_weights(scores: np.ndarray, zero_tolerance: float) -> np.ndarray:
    """score / max score, float64 [G], of scores from 0. A score that counts as 0 gets 0."""
    scores = np.asarray(scores, dtype=np.float64)
    zero = is_zero(scores, zero_tolerance)
    return np.zeros_like(scores) if zero.all() else np.where(zero, 0.0, scores / scores.max())


def loss_factor(scaling: LossScaling, kept: int, total: int) -> float:
    """The factor of the kept advantages, if `kept` of `total` trajectories are kept.

    With groups of one size kept as a whole, the kept share is RAGEN's share of kept groups.
    """
    if scaling == "none" or total == 0:
        return 1.0
    share = kept / total
    return share if scaling == "linear" else share**0.5
