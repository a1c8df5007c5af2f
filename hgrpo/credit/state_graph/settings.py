"""The settings of the state graph, and which of them go together."""

from typing import Literal

from pydantic import Field, model_validator

from hgrpo.config.strict import Strict, refuse_unread
from hgrpo.credit.settings import CreditSettings, StoredCredit
from hgrpo.credit.state_graph.terms import Term


class TrajectoryTerm(Strict):
    """The advantage of a whole rollout, which each turn of the rollout gets."""

    weight: float = Field(
        1.0, ge=0, description="weight of the trajectory's advantage; 0: leave it out"
    )
    mode: Literal["mean_std", "mean", "loo"] = Field(
        "mean_std",
        description="mean_std: z-score; mean: centred; loo: minus the others' mean (RLOO)",
    )
    rows: Literal["once", "cross_steps", "alive"] = Field(
        "once",
        description="statistics over: once: rollouts; cross_steps: turns, so that long rollouts "
        "weigh more; alive: for each turn number, the rollouts that reached it",
    )
    lone: Literal["zero", "return", "group"] = Field(
        "zero",
        description="loo: what a rollout gets at a turn number that no other one reached: zero: 0, "
        "which is biased; return: its score; group: its score minus the mean of all other rollouts",
    )

    @model_validator(mode="after")
    def _check(self) -> "TrajectoryTerm":
        refuse_unread(self, ("lone", self.mode == "loo", "mode: loo"), prefix="trajectory.")
        if self.mode == "loo" and self.rows == "cross_steps":
            raise ValueError(f"rows: {self.rows} with mode: loo, which leaves out rollouts")
        return self


_WHY = "its credit is the whole advantage, see credit."


class Settings(CreditSettings):
    """Keys beside `kind: state_graph`."""

    demands = {
        "alpha": (0.0, f"{_WHY}trajectory.weight"),
        "turn_norm": ("none", f"{_WHY}terms"),
        "group_norm": ("std", f"{_WHY}trajectory.mode"),
    }

    timeout: Literal["fail", "observed", "drop", "clamp"] = Field(
        "fail",
        description="where the last turn leads if a rollout runs out of turns: fail: into failure; "
        "observed: to the state seen after it; drop: nowhere, it is not counted; clamp: to the "
        "state seen after it, which is then worth 0",
    )
    failure: Literal["absorb", "observed"] = Field(
        "absorb",
        description="where the last turn leads if the environment ends a rollout without success: "
        "absorb: into failure; observed: to the state seen after it",
    )
    scale: float = Field(1.0, gt=0, description="reward of a success; a failure pays 0")
    invalid: Literal["none", "row", "propagate", "succ"] = Field(
        "none",
        description="what an inadmissible action lowers by `penalty`: row: its turn's return and "
        "score; propagate: its rollout's score; succ: the value of the state it led to",
    )
    penalty: float = Field(0.1, gt=0, description="how much `invalid` lowers, in units of `scale`")
    trajectory: TrajectoryTerm = Field(TrajectoryTerm(), description="the trajectory's advantage")
    mixture: Literal["sum", "renormalise_present"] = Field(
        "sum",
        description="weighted sum of the terms, or weighted mean of those present at the turn",
    )
    drop_zero: bool = Field(False, description="whether a term whose credit is exactly 0 is absent")
    terms: list[Term] = Field([], description="summands of the step credit")

    @property
    def of_turns(self) -> bool:  # type: ignore[override]
        """Whether a term, or the set of peers at a turn number, tells turns apart."""
        return bool(self.terms) or self.trajectory.rows == "alive"

    @property
    def needs_policy(self) -> bool:  # type: ignore[override]
        """Whether states are told apart by the policy's hidden states."""
        return any(term.key.state == "hidden" for term in self.terms)

    def on_stored_rollouts(self, fitted: bool) -> StoredCredit:
        """Say which policy's hidden states tell the states apart."""
        note = "states are clusters of hidden states of the policy that the round started from"
        return StoredCredit(self, self.sums_to, note if self.needs_policy else "")

    @property
    def scores_rollouts(self) -> bool:
        """Whether the trajectory's advantage enters the result."""
        return self.trajectory.weight > 0 or any(term.credit == "traj" for term in self.terms)

    @model_validator(mode="after")
    def _check(self) -> "Settings":
        if not self.scores_rollouts and not self.terms:
            raise ValueError("trajectory.weight: 0 without terms leaves no credit")
        averaged = self.mixture == "renormalise_present"
        if averaged and not self.terms:
            raise ValueError("mixture: renormalise_present without terms has nothing to average")
        refuse_unread(
            self,
            ("drop_zero", averaged, "mixture: renormalise_present"),
            ("penalty", self.invalid != "none", "invalid other than none"),
        )
        reader = "a trajectory.weight or credit: traj"
        refuse_unread(
            self.trajectory,
            ("mode", self.scores_rollouts, reader),
            ("rows", self.scores_rollouts, reader),
            prefix="trajectory.",
        )
        self._check_invalid()
        self._check_ends()
        if self.scale != 1:
            for term in self.terms:
                if term.floor is not None or term.credit == "logratio":
                    floor = "log_floor" if term.floor is None else "floor"
                    raise ValueError(f"scale: {self.scale} with a {floor}, which needs values <= 1")
        return self

    def _check_invalid(self) -> None:
        credits = {term.credit for term in self.terms}
        if self.invalid == "succ" and "succ" not in credits:
            raise ValueError("invalid: succ without a term of credit: succ")
        if self.invalid == "propagate" and not self.scores_rollouts:
            raise ValueError("invalid: propagate without a trajectory.weight or credit: traj")
        if self.invalid == "row":
            if credits - {"G-V", "traj"}:
                other = ", ".join(sorted(credits - {"G-V", "traj"}))
                raise ValueError(f"invalid: row with credit: {other}, which holds no turn's return")
            if self.scores_rollouts and self.trajectory.rows != "cross_steps":
                raise ValueError(
                    f"invalid: row with trajectory.rows: {self.trajectory.rows}; only cross_steps "
                    "scores turns"
                )

    def _check_ends(self) -> None:
        """Refuse a `timeout` or `failure` that no term reads, or that leaves values undefined."""
        values = {term.value for term in self.terms}
        given = ", ".join(sorted(values)) or "no terms"
        if self.timeout == "drop" and not (values and values <= {"bellman", "dist"}):
            raise ValueError(
                f"timeout: drop with value: {given}; only bellman and dist count transitions"
            )
        if self.timeout == "clamp" and values != {"bellman"}:
            raise ValueError(f"timeout: clamp with value: {given}; only bellman backs values up")
        reads = any(term.reads_successors for term in self.terms)
        # Without discounting, the values of a loop with no exit are undetermined.
        open_ended = any(term.value == "bellman" and term.gamma == 1 for term in self.terms)
        for rule in (f"timeout: {self.timeout}", f"failure: {self.failure}"):
            if rule.endswith(("observed", "clamp")) and not reads:
                raise ValueError(f"{rule} without a term that looks at where a turn led")
            if rule.endswith(("observed", "clamp")) and self.needs_policy:
                raise ValueError(
                    f"{rule} with key.state: hidden; the policy has no hidden state for a reply "
                    "after the last one"
                )
            if rule.endswith(("observed", "drop")) and open_ended:
                raise ValueError(
                    f"{rule} with gamma: 1.0: the value of a state without a way out is not "
                    "determined"
                )
