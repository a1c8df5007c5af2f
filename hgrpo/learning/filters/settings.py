"""Settings of the rollout filter. Importing this module does not import torch."""

from typing import Literal, Self

from pydantic import Field, model_validator

from hgrpo.config.strict import Strict, refuse_unread

Score = Literal[
    "deviation",
    "variance",
    "success_variance",
    "mean",
    "sum",
    "entropy",
    "entropy_deviation",
    "length",
]
Strategy = Literal["top_p", "top_k", "top_k_abs", "min_p", "percentile", "within_group"]
LossScaling = Literal["none", "linear", "sqrt"]

# Scores that compare the trajectories of a group. They are 0 for a single trajectory.
_COMPARES = {"deviation", "variance", "success_variance", "entropy_deviation"}
# Scores that may be negative.
_SIGNED = {"mean", "sum"}


class FilterConfig(Strict):
    """Settings of the filter, which selects groups by a score. The defaults keep all groups."""

    score: Score = Field(
        "deviation",
        description="score of a group. deviation, variance, mean, sum: this statistic of its "
        "returns (deviation is the sample standard deviation, which RAGEN calls reward variance); "
        "success_variance: variance of success, which ignores penalties; entropy: mean over "
        "trajectories of the policy's mean entropy per sampled token; entropy_deviation: standard "
        "deviation of these means; length: mean number of sampled tokens",
    )
    strategy: Strategy = Field(
        "top_p",
        description="what is kept. top_p: the best groups up to a share of the scores (see "
        "`mode`); top_k: a share of the groups; top_k_abs: a number of groups; min_p: groups that "
        "reach a share of the best score; percentile: groups in a band of ranks; within_group: in "
        "every group, the subset of trajectories whose returns have the largest variance",
    )
    value: float = Field(
        1.0,
        gt=0,
        description="amount to keep. top_p, top_k, min_p and within_group: a share in (0, 1]; "
        "top_k_abs: a number of groups, up to `tasks_per_step`. top_p with 1 keeps all groups",
    )
    low: float = Field(
        0.0, ge=0, le=1, description="percentile: lower end of the band; 0 is the lowest score"
    )
    high: float = Field(
        1.0,
        ge=0,
        le=1,
        description="percentile: upper end of the band, exclusive; 1 includes the highest score",
    )
    mode: Literal["linear", "softmax"] = Field(
        "linear",
        description="top_p: groups are kept, best first, until they reach the share `value` of the "
        "sum of scores (linear) or of the softmax of the scores (softmax). The softmax depends on "
        "the scale of the returns. The modes keep different groups for the same `value`",
    )
    temperature: float = Field(
        1.0, gt=0, description="top_p, softmax: temperature of the softmax, in units of the score"
    )
    eps: float = Field(
        0.01,
        ge=0,
        description="top_p, linear: tolerance, in units of the score, by which the sum of the "
        "kept scores may be less than the share `value` of all scores. If that share is at most "
        "`eps`, the whole batch is dropped",
    )
    of: Literal["all", "remaining"] = Field(
        "all",
        description="top_k: whether the share is relative to all groups, or to those that remain "
        "after dropping groups with score 0",
    )
    order: Literal["largest", "smallest"] = Field(
        "largest", description="whether to keep groups with the largest or the smallest scores"
    )
    include_zero: bool = Field(
        True, description="false: groups with score 0 are dropped before the selection"
    )
    zero_tolerance: float = Field(1e-10, ge=0, description="scores up to this value count as 0")
    soft: bool = Field(
        False,
        description="true: instead of dropping groups, multiply each group's advantages by its "
        "score divided by the batch's largest score",
    )
    loss_scaling: LossScaling = Field(
        "none",
        description="multiply kept advantages by the kept share of trajectories (linear) or its "
        "square root (sqrt); the entropy bonus and the KL penalty are not scaled",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        strategy, hard = self.strategy, ("strategy", "value", "include_zero", "loss_scaling")
        refuse_unread(self, *((name, not self.soft, "soft: false") for name in hard))
        top_p = strategy == "top_p" and not self.soft
        ordered = strategy not in ("percentile", "within_group") and not self.soft
        softmax, linear = self.mode == "softmax", self.mode == "linear"
        refuse_unread(
            self,
            (
                "value",
                strategy != "percentile",
                "a strategy other than percentile, which uses `low` and `high`",
            ),
            *((name, strategy == "percentile", "strategy: percentile") for name in ("low", "high")),
            ("mode", top_p, "strategy: top_p"),
            ("temperature", top_p and softmax, "strategy: top_p and mode: softmax"),
            ("eps", top_p and linear, "strategy: top_p and mode: linear"),
            ("of", strategy == "top_k", "strategy: top_k"),
            ("order", ordered, "strategy: top_p, top_k, top_k_abs or min_p"),
        )
        if self.strategy == "top_k_abs":
            if self.value != int(self.value):
                raise ValueError(f"value: {self.value:g}: strategy top_k_abs requires an integer")
        elif self.value > 1:
            raise ValueError(
                f"value: {self.value:g}: strategy {self.strategy} requires a share in (0, 1]"
            )
        if self.low >= self.high:
            raise ValueError(f"low: {self.low:g} must be less than `high: {self.high:g}`")
        shares = {
            "soft: true": self.soft,
            "strategy: min_p": strategy == "min_p",
            "strategy: top_p with mode: linear": strategy == "top_p" and linear,
        }
        reader = next((name for name, takes in shares.items() if takes), "")
        if self.score in _SIGNED and reader:
            raise ValueError(
                f"score: {self.score} may be negative, but {reader} requires scores of at least 0"
            )
        return self

    @property
    def needs_entropies(self) -> bool:
        """Whether the score is computed from token entropies."""
        return self.score in ("entropy", "entropy_deviation")

    @property
    def compares(self) -> str:
        """The score or strategy that compares a group's trajectories, as "key: value", or ""."""
        if self.score in _COMPARES:
            return f"score: {self.score}"
        return "strategy: within_group" if self.strategy == "within_group" else ""
