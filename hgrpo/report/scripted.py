"""Scripted players shown beside the arms: the imitated expert and the ceiling."""

from collections.abc import Mapping

import pandas as pd

COLUMNS = ["label", "panel", "trajectories", "success", "score"]
IMITATED = "the expert that was imitated"


def scripted_players(expert: Mapping) -> pd.DataFrame:
    """One row per scripted player that the expert stage recorded, with `COLUMNS`.

    Success counts only if it comes within the policies' turn cap. Score is the mean reward of whole
    trajectories. `expert` is summary.json of the expert stage.
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
