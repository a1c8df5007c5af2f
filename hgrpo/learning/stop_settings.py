"""Settings of the rules that stop a run whose training has failed, or has nothing left to learn.

`hgrpo.learning.stops` applies them. Importing this module imports no torch.
"""

from pydantic import Field

from hgrpo.config.strict import Strict


class RewardCollapse(Strict):
    """Stops a run whose returns no longer differ within groups, compared with how it began.

    A step's deviation is the mean over its groups, before any filter, of the deviation of their
    returns. Steps of which the filter left nothing do not count.
    """

    window: int = Field(
        10,
        gt=0,
        description="steps whose mean deviation is the baseline, the run's first ones; and steps "
        "in a row that must lie below the limit, none of them among the first ones",
    )
    share: float = Field(
        0.1, gt=0, lt=1, description="the limit is this share of the baseline, or `floor`"
    )
    floor: float = Field(
        1e-3,
        ge=0,
        description="least value of the limit, in units of the return; without it a run that has "
        "a baseline of 0 would never stop",
    )
    solved_above: float = Field(
        0.9,
        gt=0,
        le=1,
        description="if the mean success rate of the steps in the window is above this, the run "
        "is `solved` and has not failed; 1: never",
    )


class LowValidation(Strict):
    """Stops a run that wins almost nothing on the validation panel; round 0 does not count."""

    below: float = Field(
        0.01, gt=0, le=1, description="a round is low if its success rate is below this"
    )
    rounds: int = Field(
        5,
        gt=0,
        description="low rounds in a row after which the run stops; in a study of fewer rounds "
        "this never happens",
    )


class EmptySteps(Strict):
    """Stops a run of whose batches the filter leaves nothing."""

    steps: int = Field(5, gt=0, description="empty steps in a row after which the run stops")
    solved_above: float = Field(
        0.9,
        gt=0,
        le=1,
        description="if the mean success rate of these steps is above this, the run is `solved` "
        "and has not failed: groups that always win differ no more; 1: never",
    )


class StopConfig(Strict):
    """When a run stops before its last round; each rule is off where it is null."""

    reward_collapse: RewardCollapse | None = Field(
        None, description="stop if the returns no longer differ within groups; null: off"
    )
    low_validation: LowValidation | None = Field(
        None, description="stop if the validation panel is hardly ever won; null: off"
    )
    empty_steps: EmptySteps | None = Field(
        None, description="stop if the filter leaves nothing, step after step; null: off"
    )

    def check(self, rollouts_per_task: int) -> None:
        """Check that the rules suit groups of this many trajectories.

        Raises:
            ValueError: returns are to be compared within groups of one trajectory.
        """
        if self.reward_collapse is not None and rollouts_per_task == 1:
            raise ValueError(
                "reward_collapse: the trajectories of a group are compared, and rollouts_per_task "
                "is 1"
            )
