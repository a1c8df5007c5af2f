"""The adaptive coefficient of the KL penalty.

The rule is that of Ziegler et al. 2019, "Fine-Tuning Language Models from Human Preferences",
https://arxiv.org/abs/1909.08593, in the stepwise form of the reference system. While the observed
KL is inside [0.5, 1.5] x target, the coefficient stays. Above that range it is multiplied by 1.5;
below, it is divided by 1.5.
"""

from hgrpo.learning.settings import KlConfig

_UPPER, _LOWER, _FACTOR = 1.5, 0.5, 1.5


class KlController:
    """Moves the coefficient so that the observed KL per token stays near its target."""

    def __init__(self, config: KlConfig):
        self.config, self.coefficient = config, config.init

    def update(self, observed: float) -> None:
        """Move the coefficient after a step whose mean KL per token was `observed`, in nats.

        A coefficient of 0 stays 0: the penalty is off.
        """
        if not self.config.adaptive or self.coefficient == 0.0:
            return
        if observed > _UPPER * self.config.target:
            factor = _FACTOR
        elif observed < _LOWER * self.config.target:
            factor = 1.0 / _FACTOR
        else:
            return
        moved = self.coefficient * factor
        self.coefficient = min(max(moved, self.config.minimum), self.config.maximum)
