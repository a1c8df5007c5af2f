"""Does progress say what the reward will say? One number over played episodes."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import pearsonr


def progress_and_reward(rows: Sequence[Mapping]) -> dict | None:
    """How the progress of whole episodes goes with what they were paid in the end.

    Args:
        rows: demonstrations with `score`, the sum of rewards; one without `progress`, the sum of
            its turns' progress, is left out.

    Returns:
        Their number, both means, and Pearson's correlation, which is None where all have made the
        same progress or all were paid the same. None without any.
    """
    played = [row for row in rows if row.get("progress") is not None]
    if not played:
        return None
    progress = np.array([row["progress"] for row in played])
    reward = np.array([row["score"] for row in played])
    # Sums of differences that are equal on paper differ in their last bits.
    varied = np.ptp(progress) > 1e-9 and np.ptp(reward) > 1e-9
    return {
        "trajectories": len(played),
        "mean_progress": float(progress.mean()),
        "mean_reward": float(reward.mean()),
        "correlation": float(pearsonr(progress, reward).statistic) if varied else None,
    }
