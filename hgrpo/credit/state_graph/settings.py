"""Settings of the state graph, and checks of their combinations."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from hgrpo.config.strict import Strict, refuse_unread
from hgrpo.credit.settings import CreditSettings, StoredCredit

CREDITS = {
    "none": {"traj"},
    "mc_mean": {"G-V", "td", "gain", "succ", "logratio"},
    "bellman": {"Q-V", "td", "gain", "succ", "logratio"},
    "dist": {"dist_pow"},
}
# These kinds of credit are relative to the value of the turn's state, so 0 is average credit.
CENTRED = {"G-V", "Q-V", "td", "gain", "logratio"}


class Key(Strict):
    """The definition of equal states."""

    state: Literal["obs", "obs_cmds", "struct", "page", "sim", "hidden"] = Field(
        "struct",
        description="what identifies a state. obs: the observation; obs_cmds: observation and "
        "commands; struct: the environment's fingerprint of state and commands; page: the "
        "observation with whitespace collapsed; sim: similar observations; hidden: similar hidden "
        "states of the policy",
    )
    noop: Literal["raw", "carry"] = Field(
        "carry",
        description="state after an inadmissible action. raw: as after any action; carry: the "
        "state before it",
    )
    theta: float = Field(
        0.9,
        gt=0,
        le=1,
        description="minimum similarity within a state. sim: of texts; hidden: cosine",
    )
    history: int = Field(0, ge=0, description="number of previous states that must also be equal")
    history_actions: bool = Field(
        False, description="whether the actions in the previous states must also be equal"
    )

    @model_validator(mode="after")
    def _check(self) -> "Key":
        refuse_unread(
            self,
            ("theta", self.state in ("sim", "hidden"), "state: sim or hidden"),
            ("history_actions", self.history > 0, "history above 0"),
        )
        return self


class Term(Strict):
    """Settings of one summand of the step advantage: values, credit and normalisation."""

    key: Key = Field(Key(), description="definition of equal states")
    value: Literal["none", "mc_mean", "bellman", "dist"] = Field(
        description="value of a state. none: no values; mc_mean: mean return of its visits; "
        "bellman: Bellman backups over the group's transitions; dist: `base`^(distance to success)"
    )
    credit: Literal["traj", "G-V", "Q-V", "td", "gain", "succ", "dist_pow", "logratio"] = Field(
        description="credit of a turn with return-to-go G, action value Q, state value V and next "
        "state's value V'. traj: the rollout's advantage; G-V, Q-V: this difference; td: gamma V' "
        "- V; gain: V' - V; succ, dist_pow: V'; logratio: log(V' / V)"
    )
    gamma: float = Field(0.95, gt=0, le=1, description="discount factor per turn")
    exp: Literal[0, 1] = Field(
        0,
        description="mc_mean: exponent of gamma in a success's last turn; dist: added to distances",
    )
    depth: Annotated[int, Field(ge=0)] | Literal["inf"] = Field(
        "inf",
        description="number of Bellman backups, starting from mean returns; inf: the fixed point",
    )
    agg: Annotated[float, Field(ge=1, le=100)] | Literal["max"] = Field(
        1.0, description="order of the power mean over successors in a Bellman backup"
    )
    mu: Literal["count", "uniform"] = Field(
        "count", description="weight of an action. count: its frequency; uniform: the same for all"
    )
    base: float = Field(0.1, gt=0, lt=1, description="dist: base of the exponential")
    log_floor: float = Field(
        0.01, gt=0, lt=1, description="logratio: lower bound applied to values before the logarithm"
    )
    pool: Literal["turn", "transition", "action"] = Field(
        "turn",
        description="turns over which credit is averaged. turn: no averaging; transition: turns "
        "with equal state, action and successor; action: turns with equal state and action",
    )
    visits: Literal["every", "first"] = Field(
        "every",
        description="G-V: turns included in means and deviations. every: all; first: only the "
        "first of a rollout's turns with equal state and action",
    )
    prior: float = Field(
        0.0,
        ge=0,
        description="G-V: shrink a state's value towards the group's success rate, as if the state "
        "had this many additional visits with that return",
    )
    shrink: float = Field(
        0.0,
        ge=0,
        description="G-V, pool action: shrink an action's value towards the state's, as if the "
        "action had this many additional visits with that return",
    )
    lone: Literal["mean", "loo"] = Field(
        "mean",
        description="G-V, pool action: baseline of an action taken once. mean: mean return of all "
        "visits to the state; loo: mean return of all other visits to it",
    )
    variance_gate: float | None = Field(
        None,
        gt=0,
        description="G-V, pool action: multiply a state's credit by tanh(visits / variance_gate) "
        "and by the share of its return variance that is between actions; null: do not multiply",
    )
    gae: Literal["none", "instances", "distinct", "path"] = Field(
        "none", description="td: which later TD errors to add, see `with_later_errors` in values.py"
    )
    gae_lambda: float = Field(0.95, ge=0, le=1, description="td: lambda of the later TD errors")
    scope: Literal["state", "task", "none"] = Field(
        "state", description="set of turns over which credit is normalised"
    )
    std: Literal["none", "sample", "pop", "mu_pop"] = Field(
        "sample",
        description="normalisation of credit within `scope`. none: centre; sample, pop: centre "
        "and divide by the sample or population standard deviation; mu_pop: divide, without "
        "centring, by the deviation around 0 with weights `mu`",
    )
    floor: float | None = Field(
        None, gt=0, description="divide by max(deviation, floor); null: divide by deviation + 1e-6"
    )
    gate: Literal["visits2", "actions2", "sign"] = Field(
        "visits2",
        description="states that get credit. visits2: states with at least two visits; actions2: "
        "states with at least two actions; sign: all states, but a single visit gets only the "
        "sign of its credit",
    )
    weight: float = Field(1.0, gt=0, description="weight of the term in the step advantage")

    @property
    def reads_graph(self) -> bool:
        """Whether the credit, pool or scope depends on the states of the graph."""
        return self.credit != "traj" or self.pool != "turn" or self.scope == "state"

    @property
    def reads_successors(self) -> bool:
        looks_back = self.credit in ("traj", "G-V") or (self.credit == "Q-V" and self.depth == 0)
        return not looks_back or self.pool == "transition"

    @model_validator(mode="after")
    def _check(self) -> "Term":
        if self.credit not in CREDITS[self.value]:
            known = ", ".join(sorted(CREDITS[self.value]))
            raise ValueError(
                f"`credit: {self.credit}` is not supported with `value: {self.value}`; use {known}"
            )
        solved = self.value == "bellman"
        backed_up = solved and self.depth != 0
        scaled = self.scope != "none" and self.std != "none"
        averaged = backed_up and self.agg != "max"
        weighs_actions = averaged or (self.std == "mu_pop" and self.scope == "state")
        compares = self.credit == "G-V"
        by_action = compares and self.pool == "action"
        plain = not (self.shrink or self.prior)
        refuse_unread(
            self,
            ("key", self.reads_graph, "a credit, pool or scope that depends on states"),
            ("gamma", self.value in ("mc_mean", "bellman"), "value: mc_mean or bellman"),
            ("exp", self.value in ("mc_mean", "dist"), "value: mc_mean or dist"),
            ("depth", solved and self.agg != "max", "value: bellman and `agg` other than max"),
            ("agg", backed_up, "value: bellman and depth above 0"),
            ("mu", weighs_actions, "a mean over successors (value: bellman) or std: mu_pop"),
            ("base", self.value == "dist", "value: dist"),
            ("log_floor", self.credit == "logratio", "credit: logratio"),
            ("visits", compares and self.pool != "transition", "credit: G-V, by turn or action"),
            # With `scope: state`, normalisation subtracts the state's value, which cancels `prior`.
            ("prior", compares and self.scope != "state", "credit: G-V and scope: task or none"),
            ("shrink", by_action, "credit: G-V and pool: action"),
            ("lone", by_action and plain, "credit: G-V, pool: action, and no shrink or prior"),
            ("variance_gate", by_action, "credit: G-V and pool: action"),
            ("gae", self.credit == "td", "credit: td"),
            ("gae_lambda", self.gae != "none", "`gae` other than none"),
            ("std", self.scope != "none", "scope: state or task"),
            ("floor", scaled, "`scope` and `std` other than none"),
            ("gate", self.scope == "state", "scope: state"),
        )
        if self.value == "mc_mean" and self.credit == "td" and self.exp == 0:
            raise ValueError(
                "with `credit: td`, `exp: 0` leaves the last turn undiscounted; set `exp: 1`"
            )
        centred = self.scope == "state" and self.credit in CENTRED
        needs = "requires `scope: state` and a credit that is a difference from the state's value"
        if self.std == "mu_pop" and not centred:
            raise ValueError(f"`std: mu_pop` {needs}")
        if self.gate == "sign" and not (centred and self.std in ("sample", "pop")):
            raise ValueError(f"`gate: sign` {needs}; it also requires `std: sample` or `std: pop`")
        return self


class TrajectoryTerm(Strict):
    """Settings of the trajectory's advantage, which all turns of a rollout share."""

    weight: float = Field(1.0, ge=0, description="weight of the trajectory's advantage; 0: omit it")
    mode: Literal["mean_std", "mean", "loo"] = Field(
        "mean_std",
        description="advantage from the rollouts' scores. mean_std: z-score; mean: score minus "
        "mean; loo: score minus the mean of all other scores (RLOO)",
    )
    rows: Literal["once", "cross_steps", "alive"] = Field(
        "once",
        description="what the mean and deviation are computed over. once: rollouts; cross_steps: "
        "turns, so that long rollouts have more weight; alive: for each turn number, the rollouts "
        "that reached it",
    )
    lone: Literal["zero", "return", "group"] = Field(
        "zero",
        description="loo: advantage at a turn number that only one rollout reached. zero: 0, "
        "which is biased; return: the rollout's score; group: its score minus the mean score of "
        "all other rollouts",
    )

    @model_validator(mode="after")
    def _check(self) -> "TrajectoryTerm":
        refuse_unread(self, ("lone", self.mode == "loo", "mode: loo"), prefix="trajectory.")
        if self.mode == "loo" and self.rows == "cross_steps":
            raise ValueError(
                f"`rows: {self.rows}` requires `mode: mean` or `mode: mean_std`, got `mode: loo`"
            )
        return self


_RULES = ("invalid", "timeout", "failure")
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
        description="next state of the last turn if the rollout was truncated. fail: the failure "
        "state; observed: the final observed state; drop: unknown, so the turn is excluded from "
        "statistics; clamp: the final observed state, with value 0",
    )
    failure: Literal["absorb", "observed"] = Field(
        "absorb",
        description="next state of the last turn if the environment ended the rollout without "
        "success. absorb: the failure state; observed: the final observed state",
    )
    scale: float = Field(1.0, gt=0, description="reward of a success; a failure earns 0")
    invalid: Literal["none", "row", "propagate", "succ"] = Field(
        "none",
        description="what an inadmissible action reduces by `penalty`. none: nothing; row: return "
        "and score of its turn; propagate: score of its rollout; succ: value of its next state",
    )
    penalty: float = Field(0.1, gt=0, description="penalty of `invalid`, in units of `scale`")
    trajectory: TrajectoryTerm = Field(TrajectoryTerm(), description="the trajectory's advantage")
    mixture: Literal["sum", "renormalise_present"] = Field(
        "sum",
        description="how terms are combined. sum: weighted sum; renormalise_present: weighted "
        "mean of the terms that are present at the turn",
    )
    drop_zero: bool = Field(False, description="whether terms with credit 0 count as absent")
    terms: list[Term] = Field([], description="summands of the step advantage")

    @property
    def of_turns(self) -> bool:  # type: ignore[override]
        return bool(self.terms) or self.trajectory.rows == "alive"

    @property
    def needs_policy(self) -> bool:  # type: ignore[override]
        """Whether a key uses hidden states of the policy."""
        return any(term.key.state == "hidden" for term in self.terms)

    def on_stored_rollouts(self, fitted: bool) -> StoredCredit:
        """Add a note about the policy whose hidden states are used."""
        note = "states are clusters of hidden states of the policy at the start of the round"
        return StoredCredit(self, self.sums_to, note if self.needs_policy else "")

    @property
    def scores_rollouts(self) -> bool:
        """Whether the credit includes the trajectory's advantage."""
        return self.trajectory.weight > 0 or any(term.credit == "traj" for term in self.terms)

    @model_validator(mode="after")
    def _check(self) -> "Settings":
        if not self.scores_rollouts and not self.terms:
            raise ValueError("`trajectory.weight: 0` requires at least one entry in `terms`")
        averaged = self.mixture == "renormalise_present"
        readers = self._readers()
        refuse_unread(
            self,
            ("mixture", bool(self.terms), "terms"),
            ("drop_zero", averaged, "mixture: renormalise_present"),
            ("penalty", self.invalid != "none", "`invalid` other than none"),
            *((name, *readers.get(getattr(self, name), (True, ""))) for name in _RULES),
        )
        scored = readers["propagate"]
        refuse_unread(self.trajectory, ("mode", *scored), ("rows", *scored), prefix="trajectory.")
        if self.scale != 1:
            for term in self.terms:
                if term.floor is not None or term.credit == "logratio":
                    floor = "log_floor" if term.floor is None else "floor"
                    raise ValueError(f"scale: {self.scale}: `{floor}` requires scale: 1")
        return self

    def _readers(self) -> dict[str, tuple[bool, str]]:
        """Map values of `invalid`, `timeout` and `failure` to (is supported, required settings).

        Some values require gamma < 1, because Bellman values in a loop without exit are not unique
        if gamma is 1. Final states are not available with `key.state: hidden`, because the policy
        has no hidden state after the last reply.
        """
        credits, values = ({getattr(t, name) for t in self.terms} for name in ("credit", "value"))
        scored = self.scores_rollouts
        discounted = all(term.value != "bellman" or term.gamma < 1 for term in self.terms)
        by_turn = credits <= {"G-V", "traj"} and (
            not scored or self.trajectory.rows == "cross_steps"
        )
        looks = any(term.reads_successors for term in self.terms) and not self.needs_policy
        ahead = "a term that depends on successors, no key.state: hidden, and"
        return {
            "succ": ("succ" in credits, "a term with credit: succ"),
            "propagate": (scored, "trajectory.weight above 0 or a term with credit: traj"),
            "row": (by_turn, "credit: G-V or traj in all terms, and trajectory.rows: cross_steps"),
            "drop": (
                bool(values) and values <= {"bellman", "dist"} and discounted,
                "value: bellman or dist in all terms, and gamma below 1",
            ),
            "clamp": (looks and values == {"bellman"}, f"{ahead} value: bellman"),
            "observed": (looks and discounted, f"{ahead} gamma below 1 with value: bellman"),
        }
