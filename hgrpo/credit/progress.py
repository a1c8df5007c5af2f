"""Progress credit, which is based on the environment's dense progress signal."""

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
        "trajectory's total progress, as in flat GRPO with progress as reward",
    )

    @property
    def sums_to(self) -> SumsTo:  # type: ignore[override]
        """Credit sums to the progress unless a turn's credit includes other turns' progress."""
        return "progress" if self.to_go is None and self.spread == "turns" else ""

    @model_validator(mode="after")
    def _spread_is_read(self) -> Self:
        refuse_unread(self, ("spread", self.to_go is None, "to_go: null"))
        return self


def progress(group: Group) -> list[np.ndarray]:
    """Return the change in potential during each turn, K arrays [T_k]."""
    return [
        np.array([turn.progress for turn in trajectory.turns], dtype=np.float64)
        for trajectory in group.trajectories
    ]


class ProgressCredit(CreditAssigner):
    """Assigns to each turn the change in the task's potential during the turn.

    With `to_go`, later changes are added and a baseline is subtracted. With `spread: trajectory`,
    each turn gets the sum of all changes in its trajectory.
    """

    def assign(self, group: Group) -> list[np.ndarray]:
        rows = progress(group)
        if self.settings.spread == "trajectory":
            return [np.full(len(row), row.sum()) for row in rows]
        return credit_to_go(rows, self.settings.to_go)


make = ProgressCredit
