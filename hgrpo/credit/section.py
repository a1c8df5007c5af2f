"""Config section `credit` of a method: its credit assigner, and the assigner's settings."""

from pydantic import Field

from hgrpo.config.kind_section import KindSection
from hgrpo.credit import kinds
from hgrpo.credit.settings import CreditSettings


class CreditConfig(KindSection):
    """`kind` names a file in hgrpo/credit; the other keys are what its `Settings` accept."""

    kind: str = Field("flat", description="name of a file in hgrpo/credit")

    def labelled(self, label: str) -> str:
        """Add the assigner's remark, such as "(offline rubric)", to an arm's label."""
        return f"{label} {self.declared.label_remark}".strip()

    @classmethod
    def settings_model(cls, kind: str) -> type[CreditSettings]:
        return kinds.settings_of(kind)
