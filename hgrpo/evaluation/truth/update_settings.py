"""What a comparison with the truth must know of an arm beside its credit."""

from hgrpo.config.strict import Strict
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig

# The keys of `TrainingConfig` that decide what advantages become of an arm's credit.
TRAINING = {"invalid_action_penalty"}


class ArmUpdate(Strict):
    """What turns an arm's credit into advantages; of `training`, `TRAINING` counts for them."""

    method: MethodConfig
    training: TrainingConfig
