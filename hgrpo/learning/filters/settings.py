"""Settings of the rollout filter. Importing this module imports no torch."""

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

# Scores that compare the trajectories of a group; one trajectory alone always gets 0.
_COMPARES = {"deviation", "variance", "success_variance", "entropy_deviation"}
# Scores that may be below 0.
_SIGNED = {"mean", "sum"}


class FilterConfig(Strict):
    """Which groups of a batch the update learns from, by a score; the defaults keep all groups."""

    score: Score = Field(
        "deviation",
        description="what groups are compared by. Of the returns: deviation (the sample's, which "
        "RAGEN calls reward variance), variance, mean or sum. success_variance: the variance of "
        "success, which ignores penalties; entropy: mean over trajectories of the policy's mean "
        "entropy per sampled token; entropy_deviation: the deviation of these means; length: mean "
        "number of sampled tokens",
    )
    strategy: Strategy = Field(
        "top_p",
        description="top_p: the groups that hold a share of the scores (see `mode`); top_k: a "
        "share of the groups; top_k_abs: a number of groups; min_p: groups that score at least a "
        "share of the best score; percentile: a band of ranks; within_group: of every group, the "
        "trajectories whose returns vary most",
    )
    value: float = Field(
        1.0,
        gt=0,
        description="how much is kept: the share of top_p, top_k, min_p and within_group, above 0, "
        "up to 1; the number of groups of top_k_abs. top_p at 1 keeps every group",
    )
    low: float = Field(
        0.0, ge=0, le=1, description="percentile: where the band begins; 0 is the lowest score"
    )
    high: float = Field(
        1.0,
        ge=0,
        le=1,
        description="percentile: where the band ends; the end itself is outside, but 1 keeps the "
        "highest score",
    )
    mode: Literal["linear", "softmax"] = Field(
        "linear",
        description="top_p: groups are taken, best first, until they hold the share `value` of the "
        "sum of scores (linear), or of the softmax of the scores (softmax). The softmax depends on "
        "the scale of the returns. The same `value` keeps other groups in each mode",
    )
    temperature: float = Field(
        1.0, gt=0, description="top_p, softmax: scores are divided by it, in units of the score"
    )
    eps: float = Field(
        0.01,
        ge=0,
        description="top_p, linear: subtracted from the share that must be reached, in units of "
        "the score. If nothing is left of that share, the whole batch is dropped",
    )
    of: Literal["all", "remaining"] = Field(
        "all",
        description="top_k: a share of all groups, or of those that remain without zero groups",
    )
    order: Literal["largest", "smallest"] = Field(
        "largest", description="whether groups of the largest or of the smallest score are kept"
    )
    include_zero: bool = Field(
        True, description="false: groups whose score is 0 are dropped before the selection"
    )
    zero_tolerance: float = Field(
        1e-10, ge=0, description="a score counts as 0 up to this, in units of the score"
    )
    soft: bool = Field(
        False,
        description="true: nothing is dropped; each group's advantages are multiplied by its "
        "score, divided by the batch's largest score",
    )
    loss_scaling: LossScaling = Field(
        "none",
        description="kept advantages are multiplied by the kept share of trajectories (linear), or "
        "by its root (sqrt); entropy bonus and KL penalty are not",
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
            ("value", strategy != "percentile", "another strategy; percentile reads low and high"),
            *((name, strategy == "percentile", "strategy: percentile") for name in ("low", "high")),
            ("mode", top_p, "strategy: top_p"),
            ("temperature", top_p and softmax, "strategy: top_p and mode: softmax"),
            ("eps", top_p and linear, "strategy: top_p and mode: linear"),
            ("of", strategy == "top_k", "strategy: top_k"),
            ("order", ordered, "strategy: top_p, top_k, top_k_abs or min_p"),
        )
        if self.strategy == "top_k_abs":
            if self.value != int(self.value):
                raise ValueError(
                    f"value: {self.value:g}: strategy top_k_abs takes a whole number of groups"
                )
        elif self.value > 1:
            raise ValueError(
                f"value: {self.value:g}: strategy {self.strategy} takes a share above 0 and at "
                "most 1"
            )
        if self.low >= self.high:
            raise ValueError(f"low: {self.low:g} is not below high, {self.high:g}")
        shares = {
            "soft: true": self.soft,
            "strategy: min_p": strategy == "min_p",
            "strategy: top_p with mode: linear": strategy == "top_p" and linear,
        }
        reader = next((name for name, takes in shares.items() if takes), "")
        if self.score in _SIGNED and reader:
            raise ValueError(
                f"score: {self.score} may be below 0, and {reader} takes shares of scores"
            )
        return self

    @property
    def needs_entropies(self) -> bool:
        """Whether the score is made of the entropies of the policy's tokens."""
        return self.score in ("entropy", "entropy_deviation")

    @property
    def compares(self) -> str:
        """The setting that compares the trajectories of a group, or ""."""
        if self.score in _COMPARES:
            return f"score: {self.score}"
        return "strategy: within_group" if self.strategy == "within_group" else ""
