"""Measures how well the progress of scripted episodes predicts their reward."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import pearsonr

from hgrpo.games.base import finite


def progress_and_reward(rows: Sequence[Mapping]) -> dict | None:
    """Correlate the progress of whole episodes with their rewards.

    Args:
        rows: one mapping per episode, with `score`, the sum of its rewards, and `progress`, the sum
            of its turns' progress. Rows without progress are ignored.

    Returns:
        The number of rows with progress, both means, and Pearson's correlation, which is None if
        progress or reward does not vary. If no row has progress, the whole result is None.
    """
    played = [row for row in rows if row.get("progress") is not None]
    if not played:
        return None
    progress = np.array([finite(row["progress"], "progress of an episode") for row in played])
    reward = np.array([row["score"] for row in played])
    # Because of rounding, sums that should be equal may differ in their last bits.
    varied = np.ptp(progress) > 1e-9 and np.ptp(reward) > 1e-9
    return {
        "trajectories": len(played),
        "mean_progress": float(progress.mean()),
        "mean_reward": float(reward.mean()),
        "correlation": float(pearsonr(progress, reward).statistic) if varied else None,
    }
