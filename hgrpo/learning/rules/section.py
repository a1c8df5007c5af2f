"""Config section `objective` of a method: its update rule, and the rule's settings."""

from typing import ClassVar

from pydantic import Field

from hgrpo.config.kind_section import KindSection
from hgrpo.learning.rules import kinds
from hgrpo.learning.rules.rule import UpdateRule
from hgrpo.learning.rules.settings import RuleSettings
from hgrpo.learning.settings import TrainingConfig


class ObjectiveConfig(KindSection):
    """`rule` names an update rule; the other keys are what its `Settings` accept."""

    key: ClassVar[str] = "rule"

    rule: str = Field("PPOClip", description=f"{', '.join(kinds.known())}")

    @classmethod
    def settings_model(cls, kind: str) -> type[RuleSettings]:
        return kinds.settings_of(kind)

    def make(self, training: TrainingConfig) -> UpdateRule:
        """The rule with its settings and those of training."""
        return kinds.load(self.rule).make(self.declared, training)
