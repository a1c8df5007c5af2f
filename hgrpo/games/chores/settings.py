"""Settings of chores (configs/envs)."""

from typing import Literal, Self

from pydantic import Field, model_validator

from hgrpo.config.bounds import Share
from hgrpo.games.environment import EnvSettings, ExpertSettings


class ChoresExpert(ExpertSettings):
    """An expert with one fixed belief about each kind of object; some beliefs are wrong."""

    knows: Share = Field(
        0.4,
        description="share of right beliefs, separately for kinds of objects and for clients' bags",
    )
    sure: Share = Field(
        0.3,
        description="probability of choosing the believed place; otherwise a random one is chosen",
    )
    routine: Share = Field(
        0.0,
        description="probability of choosing the first place for a kind that never counts; "
        "otherwise a random place is chosen (requires `counted: kinds`)",
    )


class ChoresSettings(EnvSettings):
    """Settings of the games, their scores and their rewards."""

    name: Literal["chores"] = Field(description="which environment")
    turn_cap: int = Field(
        16, gt=0, description="maximum turns of an episode in training and evaluation"
    )
    chores: int = Field(16, ge=1, le=64, description="number of objects to put away in a game")
    kinds: int = Field(40, ge=2, le=72, description="number of kinds of objects")
    places: int = Field(6, ge=2, le=8, description="number of places, the same in every game")
    habits: int = Field(0, ge=0, description="seed of the habits (right places and bags)")
    share: float = Field(1.0, gt=0, le=1, description="share of a game's chores that count")
    counted: Literal["chance", "kinds"] = Field(
        "chance",
        description="which chores count: random ones in each game, or those of certain kinds",
    )
    verdict: Literal["graded", "binary"] = Field(
        "graded",
        description="reward of the last turn: the score, or 1 if the score reaches `pass_score`",
    )
    pass_score: float = Field(0.4, gt=0, le=1, description="minimum score at which a game is won")
    delay: float = Field(
        0.0, ge=0, lt=1, description="share of the score for the bag, which is chosen first"
    )
    distractor: float = Field(
        0.0, ge=0, description="size of the random immediate reward for chores that do not count"
    )
    may_leave: bool = Field(
        False, description="whether the agent may end the game; the remaining chores count as wrong"
    )
    expert: ChoresExpert = Field(
        ChoresExpert(), description="the player that generates the SFT data"
    )

    @property
    def counting(self) -> int:
        """Number of chores that count in each game."""
        return max(1, round(self.share * self.chores))

    @property
    def counting_kinds(self) -> int:
        """Number of kinds whose chores count, if `counted` is "kinds"."""
        return min(self.kinds - (self.share < 1), max(1, round(self.share * self.kinds)))

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        turns = self.chores + (self.delay > 0)
        for key, cap in (("turn_cap", self.turn_cap), ("expert.turn_cap", self.expert.turn_cap)):
            if cap < turns:
                raise ValueError(
                    f"{key}: a game takes {turns} turns, which exceeds the limit of {cap}"
                )
        if self.expert.routine and self.counted != "kinds":
            raise ValueError("expert.routine: a value above 0 requires `counted: kinds`")
        return self
