"""Progress credit: the environment's dense progress."""

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from hgrpo.config.strict import refuse_unread
from hgrpo.credit.base import CreditAssigner, Group
from hgrpo.credit.settings import SumsTo
from hgrpo.credit.to_go import ToGoSettings, credit_to_go


class Settings(ToGoSettings):
    """Keys beside `kind: progress`."""

    spread: Literal["turns", "trajectory"] = Field(
        "turns",
        description="turns: each turn gets its own progress; trajectory: each turn gets the "
        "trajectory's total progress, as in flat GRPO with a graded return",
    )

    @property
    def sums_to(self) -> SumsTo:  # type: ignore[override]
        """The progress, unless credit includes other turns."""
        return "progress" if self.to_go is None and self.spread == "turns" else ""

    @model_validator(mode="after")
    def _spread_is_read(self) -> Self:
        refuse_unread(self, ("spread", self.to_go is None, "to_go: null"))
        return self


def progress(group: Group) -> list[np.ndarray]:
    """Progress of each turn, K arrays [T_k] that sum to the final minus the first potential."""
    return [
        np.array([turn.progress for turn in trajectory.turns], dtype=np.float64)
        for trajectory in group.trajectories
    ]


class ProgressCredit(CreditAssigner):
    """Gives each turn the change in the task's potential caused by its action.

    With `to_go`, later changes are added and a baseline is subtracted. With `spread: trajectory`,
    each turn gets the sum over its trajectory.
    """

    def assign(self, group: Group) -> list[np.ndarray]:
        rows = progress(group)
        if self.settings.spread == "trajectory":
            return [np.full(len(row), row.sum()) for row in rows]
        return credit_to_go(rows, self.settings.to_go)


make = ProgressCredit
