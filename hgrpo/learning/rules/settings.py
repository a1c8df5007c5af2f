"""What the settings of every update rule have in common."""

from typing import ClassVar

from hgrpo.config.strict import Strict


class RuleSettings(Strict):
    """Settings of a rule; `of_groups` says whether it compares the rollouts of a group."""

    of_groups: ClassVar[bool] = False
