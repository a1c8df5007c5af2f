"""The rule for groups that give no policy gradient."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

DeadGroups = Literal["skip", "skip_equal_returns", "keep"]


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
