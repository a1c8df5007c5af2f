"""Settings of evaluation, and of the comparison of all credit assigners on the same rollouts."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from hgrpo.config.read import SectionError
from hgrpo.config.strict import Strict
from hgrpo.evaluation.gates import Gate

Score = Literal["success", "return"]


class Pair(Strict):
    """Two trained arms to compare."""

    arm: str = Field(description="name of a trained arm")
    against: str = Field(description="name of the trained arm to compare it with")

    @model_validator(mode="after")
    def _are_two(self) -> Self:
        if self.arm == self.against:
            raise ValueError(f"`arm` and `against` must differ, but both are {self.against}")
        return self


class Budget(Strict):
    """An endpoint at a fixed number of trajectories."""

    budget: int = Field(
        gt=0,
        description="N: the endpoint is the last evaluation before a run has played more than N "
        "trajectories. The count includes all groups of dynamic sampling, and continuations "
        "played for credit. If the first round exceeds N, the SFT policy's evaluation is used",
    )


Endpoint = Literal["area", "last_round"] | Budget


class StatisticsConfig(Strict):
    """Settings of the comparison of arms. They affect only the report."""

    endpoint: Endpoint = Field(
        "area",
        description="the score that verdicts compare, from greedy play on the test panel: the "
        "mean over all rounds (`area`), the last round's (`last_round`), or that after a given "
        "number of trajectories (a section with `budget`). Declare it before running the study",
    )
    score: Score = Field(
        "success",
        description="score of an episode in the endpoint: 1 if it succeeded, else 0 (`success`), "
        "or its return (`return`), for environments with partial rewards",
    )
    thresholds: list[float] = Field(
        [],
        description="scores, such as 0.5; the report compares how soon arms reach them. Empty: a "
        "quarter, half and three quarters of the way from the SFT policy's score to that of the "
        "reference's last round",
    )
    gates: list[Gate] = Field(
        [],
        description="expected results of controls, such as "
        "`{arm: Oracle, expect: above, points: 10}`; the report checks them and begins with the "
        "results of these checks",
    )
    pairs: list[Pair] = Field(
        [],
        description="pairs of trained arms to compare in addition to the comparisons with the "
        "reference, such as `{arm: top_p_0.9, against: top_p_nofilter}`. Holm's correction is "
        "applied over all pairs. A pair is omitted if one of its arms is not run",
    )
    pool_twin: bool = Field(
        True,
        description="whether to pool the reference's runs with those of its A/A twin, which is "
        "the same method with another `stream`; this doubles the number of baseline runs. Declare "
        "it before running the study",
    )
    confidence: float = Field(
        0.95, gt=0.5, lt=1, description="confidence level of intervals and verdicts"
    )

    @field_validator("endpoint", mode="before")
    @classmethod
    def _is_an_endpoint(cls, value: object) -> object:
        """Check the type here; pydantic alone would report one error per type of `Endpoint`."""
        if isinstance(value, Mapping):
            try:
                return Budget.model_validate(value)
            except ValidationError as error:
                raise SectionError(Budget, error) from None
        if not isinstance(value, Budget) and value not in ("area", "last_round"):
            raise ValueError("expected area, last_round or {budget: <trajectories>}")
        return value

    @field_validator("thresholds")
    @classmethod
    def _are_scores(cls, values: list[float], info: ValidationInfo) -> list[float]:
        if sorted(set(values)) != values:
            raise ValueError("expected distinct scores in ascending order")
        if info.data.get("score") == "success" and not all(0 < each <= 1 for each in values):
            raise ValueError("expected success rates above 0 and up to 1 (0.5 is 50 %)")
        return values


STATISTICS = set(StatisticsConfig.model_fields)


class EvaluationConfig(StatisticsConfig):
    """Settings of the evaluation of every round on the validation and test panels."""

    test_games: int = Field(
        500, gt=0, description="number of games per evaluation: the first games of the test panel"
    )
    validation_games: int = Field(
        200,
        gt=0,
        description="number of games per evaluation: the first games of the validation panel",
    )
    validate_trained: bool = Field(
        True,
        description="whether trained arms also play the validation panel; false saves time if "
        "nothing uses these scores",
    )
    temperatures: list[float] = Field(
        [0.0], description="temperatures at which trained arms are evaluated; 0 is greedy"
    )
    sft_temperatures: list[float] = Field(
        [0.0, 1.0, 0.7, 0.5, 0.3],
        description="temperatures at which the SFT policy is evaluated; the one with the best "
        "validation score gives the stronger baseline",
    )
    max_action_tokens: int = Field(
        12, gt=0, description="maximum tokens per reply, including the closing token"
    )
    in_flight: int = Field(256, gt=0, description="maximum episodes played concurrently")

    @field_validator("temperatures", "sft_temperatures")
    @classmethod
    def _has_greedy(cls, values: list[float]) -> list[float]:
        if any(value < 0 for value in values) or len(set(values)) < len(values):
            raise ValueError("expected distinct temperatures of at least 0")
        if 0 not in values:
            raise ValueError("0 is missing; add it, because arms are compared in greedy play")
        return values

    @property
    def panel_sizes(self) -> dict[str, int]:
        """Number of games per evaluation on each panel, in the order of play."""
        return {"validation": self.validation_games, "test": self.test_games}


class AgreementConfig(Strict):
    """Settings of `snakemake credit_agreement`, which compares assigners on the same rollouts."""

    counterfactual_groups: int = Field(
        16,
        ge=0,
        description="number of groups, from the start of the round, for which counterfactual "
        "credit is computed by replaying all turns. Fewer than 8 groups give no intervals. 0: "
        "omit methods with counterfactual credit",
    )
