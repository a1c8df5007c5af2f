"""Credit that is made worse on purpose: controls, and credit of a known quality."""

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from hgrpo.config.strict import refuse_unread
from hgrpo.credit.base import Group
from hgrpo.credit.settings import CreditSettings
from hgrpo.games.streams import generator
from hgrpo.trajectories.trajectory import Trajectory


class AlterableSettings(CreditSettings):
    """Settings that can make an assigner's credit worse: shuffled, flipped or noisy."""

    shuffled: bool = Field(
        False, description="deal each trajectory's credit to its turns at random"
    )
    flipped: bool = Field(False, description="change the sign of the credit")
    correlation: float = Field(
        1.0, gt=0, le=1, description="correlation with the credit after noise was added to it"
    )
    noise: Literal["white", "fixed"] = Field(
        "white",
        description="white: drawn anew for every turn, so that it averages out; fixed: drawn once "
        "in a run for each observation and action, as a method errs that takes one state for "
        "another (needs correlation below 1)",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_unread(self, ("noise", self.correlation < 1, "correlation below 1"))
        return self

    @property
    def is_control(self) -> bool:  # type: ignore[override]
        """Shuffled or flipped credit is a control: no method should gain from it."""
        return self.shuffled or self.flipped


def alter(rows: list[np.ndarray], settings: AlterableSettings, group: Group) -> list[np.ndarray]:
    """Shuffle the group's credit, flip it, or add noise to it; K float64 arrays [T_k].

    Noise is normal. Its variance is (1 / correlation^2 - 1) times the variance of the group's
    credit. In every group, the expected correlation of noisy and original credit is `correlation`,
    and a little more with fixed noise if the group has few different turns.
    """
    streams = [generator("altered", *group.stream, t.rollout) for t in group.trajectories]
    if settings.shuffled:
        rows = [rng.permutation(row) for rng, row in zip(streams, rows, strict=True)]
    if settings.flipped:
        rows = [-row for row in rows]
    fixed = settings.noise == "fixed"
    if settings.correlation < 1 and rows:
        # Sort, so that rounding does not depend on the order of the trajectories.
        spread = np.sort(np.concatenate(rows)).std() * np.sqrt(settings.correlation**-2 - 1)
        rows = [
            row + spread * (_fixed(t, group) if fixed else rng.standard_normal(len(row)))
            for rng, row, t in zip(streams, rows, group.trajectories, strict=True)
        ]
    return rows


def _fixed(trajectory: Trajectory, group: Group) -> np.ndarray:
    """Standard normal noise of each turn, float64 [T], the same for equal turns of a run."""
    # The first two parts of a training step's stream are those of the run.
    run = group.stream[:2]
    names = ((turn.observation, turn.action) for turn in trajectory.turns)
    return np.array([generator("altered-fixed", *run, *name).standard_normal() for name in names])
