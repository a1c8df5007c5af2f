"""How well progress predicts the reward, over played episodes."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import pearsonr


def progress_and_reward(rows: Sequence[Mapping]) -> dict | None:
    """Correlate the progress of whole episodes with their rewards.

    Args:
        rows: demonstrations with `score`, the sum of rewards, and `progress`, the sum of the
            turns' progress. Rows without progress are ignored.

    Returns:
        Number of rows, both means, and Pearson's correlation (None if progress or reward does not
        vary). None if no row has progress.
    """
    played = [row for row in rows if row.get("progress") is not None]
    if not played:
        return None
    progress = np.array([row["progress"] for row in played])
    reward = np.array([row["score"] for row in played])
    # Because of rounding, sums that should be equal may differ in their last bits.
    varied = np.ptp(progress) > 1e-9 and np.ptp(reward) > 1e-9
    return {
        "trajectories": len(played),
        "mean_progress": float(progress.mean()),
        "mean_reward": float(reward.mean()),
        "correlation": float(pearsonr(progress, reward).statistic) if varied else None,
    }
