"""Scripted players beside the arms: the expert that was imitated, and the ceiling."""

from collections.abc import Mapping

import pandas as pd

COLUMNS = ["label", "panel", "trajectories", "success", "score"]
IMITATED = "the expert that was imitated"


def scripted_players(expert: Mapping) -> pd.DataFrame:
    """One row per scripted player, with `COLUMNS`; none where the expert stage wrote none.

    Success is that within the policies' turn cap, score the mean reward of whole trajectories.

    Args:
        expert: summary.json of the expert stage.
    """
    players = {
        "success": (IMITATED, "train"),
        "informed": (expert.get("informed_is", ""), expert.get("informed_panel", "")),
    }
    rows = []
    for key, (label, panel) in players.items():
        row = (expert.get(key) or {}).get("all")
        if row:
            rows.append([label, panel, row["trajectories"], row["at_turn_cap"], row["score"]])
    return pd.DataFrame(rows, columns=COLUMNS)
