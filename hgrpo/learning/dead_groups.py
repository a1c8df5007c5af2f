"""The rule for groups that give no policy gradient."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

DeadGroups = Literal["skip", "skip_equal_returns", "keep"]
# In the published study `bakeoff`, half of flat GRPO's groups are dead, and it learns.
MOSTLY_DEAD = 2 / 3


def is_dead(advantages: Sequence[np.ndarray], returns: np.ndarray, rule: DeadGroups) -> bool:
    """Whether a group gives no policy gradient, because every blended advantage is zero.

    Under `skip_equal_returns` a group is also dead if all its returns [K] are equal, as in H-GRPO.
    The turns' credit of such a group is then not used.
    """
    if rule == "skip_equal_returns" and np.ptp(returns) == 0:
        return True
    return all(not np.any(row) for row in advantages)


def takes_part(dead: bool, rule: DeadGroups, penalised: bool) -> bool:
    """Whether the update uses a group; `dead` comes from `is_dead`.

    A KL penalty acts on dead groups too. Under such a penalty (`penalised`), `skip` therefore
    leaves no group out. `skip_equal_returns` still leaves dead groups out, as in H-GRPO.
    """
    return not dead or rule == "keep" or (rule == "skip" and penalised)


def dead_caution(arm: str, number: int, rows: Sequence[Mapping]) -> str:
    """The caution that most groups of a round were dead, from its log rows; "" if they were not.

    After round 1 it is no caution if training has solved most tasks.
    """
    dead, groups = (sum(row[name] for row in rows) for name in ("dead_groups", "n_groups"))
    easy = sum(row["success_rate"] * row["n_groups"] for row in rows) > groups / 2
    if not groups or dead < MOSTLY_DEAD * groups or (easy and number > 1):
        return ""
    return (
        f"Most groups are dead: in round {number}, {100 * dead / groups:.0f} % of those of {arm} "
        "gave nothing to learn from. Try more training.rollouts_per_task, another "
        f"training.temperature, {'harder' if easy else 'a better SFT policy or easier'} games."
    )
