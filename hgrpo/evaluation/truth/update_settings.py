"""Settings that convert an arm's credit to advantages, for comparisons with the truth."""

from hgrpo.config.strict import Strict
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig

# The keys of `TrainingConfig` that affect an arm's advantages.
TRAINING = {"invalid_action_penalty"}


class ArmUpdate(Strict):
    """An arm's settings. Only the keys `TRAINING` of `training` affect the arm's advantages."""

    method: MethodConfig
    training: TrainingConfig
