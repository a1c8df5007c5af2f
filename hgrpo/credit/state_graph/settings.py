"""The settings of the state graph, and which of them go together."""

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
# These credits are differences from the value of the turn's own state, so 0 means average.
CENTRED = {"G-V", "Q-V", "td", "gain", "logratio"}


class Key(Strict):
    """Says when two turns are in the same state."""

    state: Literal["obs", "obs_cmds", "struct", "page", "sim", "hidden"] = Field(
        "struct",
        description="what must be equal: obs: observation; obs_cmds: observation and commands; "
        "struct: the environment's fingerprints of state and commands; page: observation with "
        "white space collapsed; sim: nothing, similar observations are enough; hidden: nothing, "
        "similar hidden states of the policy are enough",
    )
    noop: Literal["raw", "carry"] = Field(
        "carry", description="carry: an inadmissible action leaves the agent in the same state"
    )
    theta: float = Field(
        0.9,
        gt=0,
        le=1,
        description="sim: least similarity of two texts in one state; hidden: least cosine",
    )
    history: int = Field(0, ge=0, description="number of earlier states that must be equal too")
    history_actions: bool = Field(
        False, description="whether the actions in them must be equal too"
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
    """One summand of the step advantage: a value of states, a credit of turns, and a scaling."""

    key: Key = Field(Key(), description="when two turns are in the same state")
    value: Literal["none", "mc_mean", "bellman", "dist"] = Field(
        description="value of a state: none; mc_mean: mean return of its visits; bellman: Bellman "
        "backups of the group's own transitions; dist: `base` to the power of the distance from a "
        "success"
    )
    credit: Literal["traj", "G-V", "Q-V", "td", "gain", "succ", "dist_pow", "logratio"] = Field(
        description="traj: the rollout's advantage; G-V: return minus the state's value; Q-V: the "
        "action's value minus the state's; td: gamma times the next value minus this one; gain: "
        "the next value minus this one; succ and dist_pow: the next value; logratio: logarithm of "
        "the next value over this one"
    )
    gamma: float = Field(0.95, gt=0, le=1, description="discount of a turn")
    exp: Literal[0, 1] = Field(
        0, description="mc_mean: times a success's last turn is discounted; dist: added to d"
    )
    depth: Annotated[int, Field(ge=0)] | Literal["inf"] = Field(
        "inf", description="number of Bellman backups, starting from the mean return"
    )
    agg: Annotated[float, Field(ge=1, le=100)] | Literal["max"] = Field(
        1.0, description="order of the power mean over successors in a backup"
    )
    mu: Literal["count", "uniform"] = Field(
        "count", description="weight of an action: count: as often as taken; uniform: all equal"
    )
    base: float = Field(0.1, gt=0, lt=1, description="w in w^distance")
    log_floor: float = Field(
        0.01, gt=0, lt=1, description="lower bound of a value before its logarithm"
    )
    pool: Literal["turn", "transition", "action"] = Field(
        "turn", description="turns with equal transition, or equal state and action, share the mean"
    )
    visits: Literal["every", "first"] = Field(
        "every",
        description="G-V: which turns enter means and deviations; first: of a rollout's turns with "
        "equal state and action, only the first",
    )
    prior: float = Field(
        0.0,
        ge=0,
        description="G-V: draw a state's value towards the share of rollouts that won, as if this "
        "many more visits had that return",
    )
    shrink: float = Field(
        0.0,
        ge=0,
        description="G-V, pool action: draw an action's value towards the state's, as if this many "
        "more visits had that return",
    )
    lone: Literal["mean", "loo"] = Field(
        "mean",
        description="G-V, pool action: what the return of an action taken once is compared with: "
        "mean: the mean of all visits to the state; loo: of the other visits",
    )
    variance_gate: float | None = Field(
        None,
        gt=0,
        description="G-V, pool action: multiply a state's credit by tanh(visits / this) and by the "
        "share of its returns' variance that lies between actions; null: by 1",
    )
    gae: Literal["none", "instances", "distinct", "path"] = Field(
        "none", description="which later TD errors are added, see values.py"
    )
    gae_lambda: float = Field(0.95, ge=0, le=1, description="decay of later TD errors, times gamma")
    scope: Literal["state", "task", "none"] = Field(
        "state", description="turns over which credit is normalised"
    )
    std: Literal["none", "sample", "pop", "mu_pop"] = Field(
        "sample", description="deviation to divide by; none: only centre; mu_pop: do not centre"
    )
    floor: float | None = Field(
        None, gt=0, description="divide by max(deviation, floor); null: by deviation + 1e-6"
    )
    gate: Literal["visits2", "actions2", "sign"] = Field(
        "visits2",
        description="which states give credit: visits2: those with two visits; actions2: with two "
        "actions; sign: all, and a single visit gets the sign of its credit",
    )
    weight: float = Field(1.0, gt=0, description="weight of the term in the step credit")

    @property
    def reads_graph(self) -> bool:
        """Whether the term needs the graph; `traj` needs it only for a pool or for scope state."""
        return self.credit != "traj" or self.pool != "turn" or self.scope == "state"

    @property
    def reads_successors(self) -> bool:
        """Whether the term depends on where a turn led."""
        looks_back = self.credit in ("traj", "G-V") or (self.credit == "Q-V" and self.depth == 0)
        return not looks_back or self.pool == "transition"

    @model_validator(mode="after")
    def _check(self) -> "Term":
        if self.credit not in CREDITS[self.value]:
            known = ", ".join(sorted(CREDITS[self.value]))
            raise ValueError(
                f"credit: {self.credit} is not a credit of value: {self.value}; {known}"
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
            ("key", self.reads_graph, "a credit, pool or scope that looks at states"),
            ("gamma", self.value in ("mc_mean", "bellman"), "value: mc_mean or bellman"),
            ("exp", self.value in ("mc_mean", "dist"), "value: mc_mean or dist"),
            ("depth", solved and self.agg != "max", "value: bellman and a finite agg"),
            ("agg", backed_up, "value: bellman and depth above 0"),
            ("mu", weighs_actions, "a Bellman mean or std: mu_pop"),
            ("base", self.value == "dist", "value: dist"),
            ("log_floor", self.credit == "logratio", "credit: logratio"),
            ("visits", compares and self.pool != "transition", "credit: G-V, by turn or action"),
            # A normalisation over the state subtracts whatever the state's value is.
            ("prior", compares and self.scope != "state", "credit: G-V and scope: task or none"),
            ("shrink", by_action, "credit: G-V and pool: action"),
            ("lone", by_action and plain, "credit: G-V, pool: action, and no shrink or prior"),
            ("variance_gate", by_action, "credit: G-V and pool: action"),
            ("gae", self.credit == "td", "credit: td"),
            ("gae_lambda", self.gae != "none", "gae other than none"),
            ("std", self.scope != "none", "scope: state or task"),
            ("floor", scaled, "a scope and a std"),
            ("gate", self.scope == "state", "scope: state"),
        )
        if self.value == "mc_mean" and self.credit == "td" and self.exp == 0:
            raise ValueError(
                "exp: 0 with credit: td leaves the last turn one discount short; set 1"
            )
        centred = self.scope == "state" and self.credit in CENTRED
        needs = "needs scope: state and a credit that is centred on the state's value"
        if self.std == "mu_pop" and not centred:
            raise ValueError(f"std: mu_pop {needs}")
        if self.gate == "sign" and not (centred and self.std in ("sample", "pop")):
            raise ValueError(f"gate: sign {needs}, and std: sample or pop")
        return self


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
        """Whether terms, or peers at each turn number, make turns of a trajectory differ."""
        return bool(self.terms) or self.trajectory.rows == "alive"

    @property
    def needs_policy(self) -> bool:  # type: ignore[override]
        """Whether a key compares hidden states of the policy."""
        return any(term.key.state == "hidden" for term in self.terms)

    def on_stored_rollouts(self, fitted: bool) -> StoredCredit:
        """Note which policy's hidden states are compared."""
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
        readers = self._readers()
        refuse_unread(
            self,
            ("mixture", bool(self.terms), "terms"),
            ("drop_zero", averaged, "mixture: renormalise_present"),
            ("penalty", self.invalid != "none", "invalid other than none"),
            *((name, *readers.get(getattr(self, name), (True, ""))) for name in _RULES),
        )
        scored = readers["propagate"]
        refuse_unread(self.trajectory, ("mode", *scored), ("rows", *scored), prefix="trajectory.")
        if self.scale != 1:
            for term in self.terms:
                if term.floor is not None or term.credit == "logratio":
                    floor = "log_floor" if term.floor is None else "floor"
                    raise ValueError(f"scale: {self.scale} with a {floor}, which needs values <= 1")
        return self

    def _readers(self) -> dict[str, tuple[bool, str]]:
        """Map each value of `invalid`, `timeout` and `failure` to (is it read?, its reader).

        Without discounting, the values of a loop without an exit are not determined. The policy has
        no hidden state for a reply after the last one.
        """
        credits, values = ({getattr(t, name) for t in self.terms} for name in ("credit", "value"))
        scored = self.scores_rollouts
        discounted = all(term.value != "bellman" or term.gamma < 1 for term in self.terms)
        by_turn = credits <= {"G-V", "traj"} and (
            not scored or self.trajectory.rows == "cross_steps"
        )
        looks = any(term.reads_successors for term in self.terms) and not self.needs_policy
        ahead = "a term that looks at where a turn led, no key.state: hidden, and"
        return {
            "succ": ("succ" in credits, "a term of credit: succ"),
            "propagate": (scored, "a trajectory.weight or credit: traj"),
            "row": (by_turn, "credits G-V and traj, and scores by trajectory.rows: cross_steps"),
            "drop": (
                bool(values) and values <= {"bellman", "dist"} and discounted,
                "values bellman and dist, and gamma below 1",
            ),
            "clamp": (looks and values == {"bellman"}, f"{ahead} value: bellman"),
            "observed": (looks and discounted, f"{ahead} gamma below 1 in value: bellman"),
        }
