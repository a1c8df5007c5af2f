"""Degrades credit deliberately, for controls and for credit with a known correlation."""

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from hgrpo.config.strict import refuse_unread
from hgrpo.credit.base import Group
from hgrpo.credit.settings import CreditSettings
from hgrpo.games.streams import generator
from hgrpo.trajectories.trajectory import Trajectory


class AlterableSettings(CreditSettings):
    """Settings that degrade an assigner's credit: shuffled, flipped or noisy."""

    shuffled: bool = Field(
        False, description="randomly permute each trajectory's credit over its turns"
    )
    flipped: bool = Field(False, description="change the sign of the credit")
    correlation: float = Field(
        1.0, gt=0, le=1, description="correlation of noisy and original credit; 1: no noise"
    )
    noise: Literal["white", "fixed"] = Field(
        "white",
        description="white: noise is drawn independently for every turn, so that it averages out; "
        "fixed: noise is drawn once per run for each pair of observation and action, like the "
        "systematic error of a method that confuses states (requires `correlation` below 1)",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_unread(self, ("noise", self.correlation < 1, "correlation below 1"))
        return self

    @property
    def is_control(self) -> bool:  # type: ignore[override]
        """Whether credit is shuffled or flipped, so that training should not benefit from it."""
        return self.shuffled or self.flipped


def alter(rows: list[np.ndarray], settings: AlterableSettings, group: Group) -> list[np.ndarray]:
    """Return the group's credit shuffled, flipped or with noise, as K float64 arrays [T_k].

    The noise is Gaussian. Its variance is (1 / correlation^2 - 1) times the variance of the group's
    credit, so that the expected correlation of noisy and original credit is `correlation`. With
    `noise: fixed` and few distinct turns, the expected correlation is slightly higher.
    """
    streams = [generator("altered", *group.stream, t.rollout) for t in group.trajectories]
    if settings.shuffled:
        rows = [rng.permutation(row) for rng, row in zip(streams, rows, strict=True)]
    if settings.flipped:
        rows = [-row for row in rows]
    fixed = settings.noise == "fixed"
    if settings.correlation < 1 and rows:
        # Sort so that rounding does not depend on the order of the trajectories.
        spread = np.sort(np.concatenate(rows)).std() * np.sqrt(settings.correlation**-2 - 1)
        rows = [
            row + spread * (_fixed(t, group) if fixed else rng.standard_normal(len(row)))
            for rng, row, t in zip(streams, rows, group.trajectories, strict=True)
        ]
    return rows


def _fixed(trajectory: Trajectory, group: Group) -> np.ndarray:
    """Standard normal noise, float64 [T], which is the same for equal turns of a run."""
    # During training, the first two parts of a stream's name identify the run.
    run = group.stream[:2]
    names = ((turn.observation, turn.action) for turn in trajectory.turns)
    return np.array([generator("altered-fixed", *run, *name).standard_normal() for name in names])
