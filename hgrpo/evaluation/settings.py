"""Settings of evaluation, and of the comparison of all assigners on the same rollouts."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from hgrpo.config.read import SectionError
from hgrpo.config.strict import Strict
from hgrpo.evaluation.gates import Gate

Score = Literal["success", "return"]


class Pair(Strict):
    """An arm, and the arm that it is compared with."""

    arm: str = Field(description="name of a trained arm")
    against: str = Field(description="name of the trained arm that it is compared with")

    @model_validator(mode="after")
    def _are_two(self) -> Self:
        if self.arm == self.against:
            raise ValueError(f"against: {self.against} is the arm itself")
        return self


class Budget(Strict):
    """An endpoint at a number of trajectories."""

    budget: int = Field(
        gt=0,
        description="N: the endpoint is a run's last evaluation at which it has played N "
        "trajectories or fewer, with all groups of dynamic sampling and with continuations that "
        "its credit asked for. A run whose first round takes more is still the SFT policy",
    )


Endpoint = Literal["area", "last_round"] | Budget


class StatisticsConfig(Strict):
    """Settings of the comparison of arms. Only the report reads them: they change no episode."""

    endpoint: Endpoint = Field(
        "area",
        description="what the verdicts compare, of greedy play on the test panel: the mean over "
        "all rounds (`area`), the last round (`last_round`), or the round at a number of "
        "trajectories (a section with `budget`). Declare it before the study runs",
    )
    score: Score = Field(
        "success",
        description="what an episode counts in the endpoint: 1 if it succeeded (`success`), or its "
        "return (`return`), for a world that pays in part",
    )
    thresholds: list[float] = Field(
        [],
        description="scores whose first round is compared, such as 0.5; empty: a quarter, a half "
        "and three quarters of the way from the SFT policy to the reference's last round",
    )
    gates: list[Gate] = Field(
        [],
        description="what controls must show, such as `{arm: Oracle, expect: above, points: 10}`: "
        "the report judges each, and opens with the result",
    )
    pairs: list[Pair] = Field(
        [],
        description="comparisons of trained arms beside those with the reference, such as "
        "`{arm: top_p_0.9, against: top_p_nofilter}`. Holm's correction covers them together. A "
        "pair is left out if one of its arms is not run",
    )
    pool_twin: bool = Field(
        True,
        description="whether the runs of the reference's A/A twin (the same method with another "
        "`stream`) count as further runs of the reference: twice the runs that all arms are "
        "compared with. Declare it before the study runs",
    )
    confidence: float = Field(
        0.95, gt=0.5, lt=1, description="confidence level of intervals and verdicts"
    )

    @field_validator("endpoint", mode="before")
    @classmethod
    def _is_an_endpoint(cls, value: object) -> object:
        """Check each form by itself, because pydantic would report one mistake once per form."""
        if isinstance(value, Mapping):
            try:
                return Budget.model_validate(value)
            except ValidationError as error:
                raise SectionError(Budget, error) from None
        if not isinstance(value, Budget) and value not in ("area", "last_round"):
            raise ValueError("area, last_round or {budget: <trajectories>} was expected")
        return value

    @field_validator("thresholds")
    @classmethod
    def _are_scores(cls, values: list[float], info: ValidationInfo) -> list[float]:
        if sorted(set(values)) != values:
            raise ValueError("different scores in ascending order were expected")
        if info.data.get("score") == "success" and not all(0 < each <= 1 for each in values):
            raise ValueError("shares of success above 0, up to 1, were expected (0.5 is 50 %)")
        return values


STATISTICS = set(StatisticsConfig.model_fields)


class EvaluationConfig(StatisticsConfig):
    """Settings of the evaluation of every round on the validation and test panels."""

    test_games: int = Field(
        500, gt=0, description="games of the test panel that every evaluation plays, the first ones"
    )
    validation_games: int = Field(
        200,
        gt=0,
        description="games of the validation panel that every evaluation plays, the first ones",
    )
    validate_trained: bool = Field(
        True,
        description="whether trained arms play the validation panel too; a study that chooses "
        "nothing by it saves the time",
    )
    temperatures: list[float] = Field(
        [0.0], description="temperatures at which trained arms are evaluated; 0 is greedy"
    )
    sft_temperatures: list[float] = Field(
        [0.0, 1.0, 0.7, 0.5, 0.3],
        description="temperatures at which the SFT policy is evaluated; the best on validation is "
        "the hard baseline",
    )
    max_action_tokens: int = Field(
        12, gt=0, description="most tokens of a reply, its closing token included"
    )
    in_flight: int = Field(256, gt=0, description="episodes played at the same time")

    @field_validator("temperatures", "sft_temperatures")
    @classmethod
    def _has_greedy(cls, values: list[float]) -> list[float]:
        if any(value < 0 for value in values) or len(set(values)) < len(values):
            raise ValueError("different temperatures, none below 0, were expected")
        if 0 not in values:
            raise ValueError("0 (greedy) is missing: arms are compared at it")
        return values

    @property
    def panel_sizes(self) -> dict[str, int]:
        """Panel -> the number of its games that evaluation plays; panels in the order of play."""
        return {"validation": self.validation_games, "test": self.test_games}


class AgreementConfig(Strict):
    """Settings of `snakemake credit_agreement`."""

    counterfactual_groups: int = Field(
        16,
        ge=0,
        description="groups whose turns are all played anew for counterfactual credit, the first "
        "of the round; fewer than 8 give no intervals; 0: leave such methods out",
    )
