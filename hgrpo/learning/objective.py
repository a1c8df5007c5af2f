"""The section `objective` of an arm: an update rule by name, and the rule's settings."""

from functools import cache
from typing import ClassVar

from pydantic import Field, create_model

from hgrpo.config.kind_section import KindSection
from hgrpo.config.strict import Strict
from hgrpo.formulas import kinds
from hgrpo.formulas.rule import Rule
from hgrpo.learning.settings import TrainingConfig


class ObjectiveConfig(KindSection):
    """`rule` names an update rule; the other keys are the rule's settings."""

    key: ClassVar[str] = "rule"

    rule: str = Field("PPOClip", description=f"{', '.join(kinds.known())}")

    @property
    def grouped(self) -> bool:
        """Whether the rule compares the rollouts of a group."""
        return kinds.load(self.rule).grouped

    @classmethod
    def settings_model(cls, kind: str) -> type[Strict]:
        return _without_shared(kinds.load(kind))

    def make(self, training: TrainingConfig) -> Rule:
        """The rule with its settings and those that it shares with `training`."""
        rule = kinds.load(self.rule)
        shared = {key: getattr(training, name) for key, name in rule.of_training.items()}
        return rule(**self.settings, **shared)


@cache
def _without_shared(rule: type[Rule]) -> type[Strict]:
    """The rule's settings without those that agents read from `training`."""
    if not rule.of_training:
        return rule
    fields = {
        name: (field.annotation, field)
        for name, field in rule.model_fields.items()
        if name not in rule.of_training
    }
    return create_model(rule.__name__, __base__=Strict, __doc__=rule.__doc__, **fields)
