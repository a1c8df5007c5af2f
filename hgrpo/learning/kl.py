"""The adaptive coefficient of the KL penalty.

The rule is that of Ziegler et al. 2019, "Fine-Tuning Language Models from Human Preferences",
https://arxiv.org/abs/1909.08593, in the stepwise form of H-GRPO, the reference system. If the
observed KL is above 1.5 x target, the coefficient is multiplied by 1.5. If it is below 0.5 x
target, the coefficient is divided by 1.5. The new coefficient is clamped to [minimum, maximum].
"""

from hgrpo.learning.settings import KlConfig

_UPPER, _LOWER, _FACTOR = 1.5, 0.5, 1.5


class KlController:
    """Adapts the coefficient so that the observed KL per token stays near `config.target`."""

    def __init__(self, config: KlConfig):
        self.config, self.coefficient = config, config.init

    def update(self, observed: float) -> None:
        """Adapt the coefficient after a step whose mean KL per token was `observed`, in nats.

        A coefficient of 0 stays 0, because 0 means that the penalty is off.
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
