"""Credit that is made worse on purpose: controls, and credit of a known quality."""

import numpy as np
from pydantic import Field

from hgrpo.credit.base import Group
from hgrpo.credit.settings import CreditSettings
from hgrpo.streams import generator


class AlterableSettings(CreditSettings):
    """Keys of assigners whose credit is the truth, which controls may then spoil."""

    shuffled: bool = Field(
        False, description="deal each trajectory's credit to its turns at random"
    )
    flipped: bool = Field(False, description="change the sign of the credit")
    correlation: float = Field(
        1.0, gt=0, le=1, description="correlation with the credit after noise was added to it"
    )

    @property
    def is_control(self) -> bool:  # type: ignore[override]
        """Credit with its turns or its sign mixed up must not help."""
        return self.shuffled or self.flipped


def alter(rows: list[np.ndarray], settings: AlterableSettings, group: Group) -> list[np.ndarray]:
    """The group's credit, K float64 arrays [T_k], shuffled, flipped or noisy as the settings say.

    Noise is normal. Its variance is that of the group's credit times 1 / correlation^2 - 1, so
    that the correlation with the credit has the given expectation, and the same in every group.
    """
    streams = [generator("altered", *group.stream, t.rollout) for t in group.trajectories]
    if settings.shuffled:
        rows = [rng.permutation(row) for rng, row in zip(streams, rows, strict=True)]
    if settings.flipped:
        rows = [-row for row in rows]
    if settings.correlation < 1 and rows:
        # Sorted, so that the order of the trajectories does not matter to the last bit.
        spread = np.sort(np.concatenate(rows)).std() * np.sqrt(settings.correlation**-2 - 1)
        rows = [
            row + spread * rng.standard_normal(len(row))
            for rng, row in zip(streams, rows, strict=True)
        ]
    return rows
