"""What a rule without groups subtracts from rewards."""

from torch import Tensor

from hgrpo.learning.objectives.group import leave_one_out
from hgrpo.learning.objectives.spread import collision_probability
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rollout import Rollout

_CONSTANT = 0.5


def baseline(settings: RlSettings, rollout: Rollout, table: Tensor) -> Tensor:
    """The baseline that the settings name, without a gradient; it broadcasts to [S, N, K, M, T].

    Args:
        table: log-probs under the current weights, [S, N, K, M, T, V].
    """
    name, stated = settings.baseline, rollout.expected
    if stated is not None and (
        name in ("expected", "exact")
        or (settings.compat == "reference" and name in ("zero", "constant"))
    ):
        return stated[..., None, None, None]
    if name in ("zero", "constant"):
        value = _CONSTANT if name == "constant" else 0.0
        return rollout.behaviour.new_full((1,) * rollout.behaviour.dim(), value)
    if name == "group":
        axis = 2 if rollout.group_size > 1 else 1
        return leave_one_out(rollout.rewards, axis)[..., None, None]
    return collision_probability(table)
