"""Settings of evaluation, and of the comparison of all assigners on the same rollouts."""

from pydantic import Field, field_validator

from hgrpo.config.strict import Strict

# Only the statistics read these settings, so a change of them changes no episode.
STATISTICS = {"bootstrap", "confidence"}


class EvaluationConfig(Strict):
    """Settings of the evaluation of every round on the validation and test panels."""

    test_games: int = Field(
        500, gt=0, description="games of the test panel that every evaluation plays, the first ones"
    )
    validation_games: int = Field(
        200,
        gt=0,
        description="games of the validation panel that every evaluation plays, the first ones",
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
    bootstrap: int = Field(10_000, gt=0, description="samples of the bootstrap intervals")
    confidence: float = Field(
        0.95, gt=0.5, lt=1, description="confidence level of intervals and verdicts"
    )

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
        4,
        ge=0,
        description="groups whose turns are all played anew for counterfactual credit, the first "
        "of the round; 0: leave such methods out",
    )
