"""A group of four rollouts small enough to compute by hand, and how to make others like it.

Six states A (start) to F, actions in lower case:

- r1 wins: A -a-> B -a-> C -take-> success
- r2 wins by a detour with a loop: A -a-> B -b-> D -back-> B -a-> C -take-> success
- r3 runs out of turns in E: A -b-> E -look-> E -go-> D -back-> B -c-> A -b-> E; `look` is
  inadmissible
- r4 fails after r1's first moves: A -a-> B -a-> C -drop-> F -buy-> lost
"""

import numpy as np

from hgrpo.credit.base import Context, Group
from hgrpo.credit.state_graph import Settings, make
from hgrpo.games.base import Task
from hgrpo.trajectories.trajectory import FinalState, Trajectory, Turn

TASK = Task("example", "example", "0" * 64, "example")

R1 = "A a, B a, C take"
R2 = "A a, B b, D back, B a, C take"
R3 = "A b, E look!, E go, D back, B c, A b, E"
R4 = "A a, B a, C drop, F buy, lost"


def rollout(moves: str, end: str = "failure") -> Trajectory:
    """A rollout from "state action, state action, ..."; "!" marks an inadmissible action.

    A last state without an action is the situation that it ended in. Without one, its end was not
    observed.
    """
    turns, final = [], None
    for move in moves.split(", ") if moves else []:
        state, _, action = move.partition(" ")
        if not action:
            final = FinalState(observation=state, state=state, commands="")
            continue
        turns.append(
            Turn(
                observation=state,
                action=action.removesuffix("!"),
                span=(0, 0),
                env_reward=0.0,
                progress=0.0,
                admissible=not action.endswith("!"),
                overlong=False,
                state=state,
                commands="",
            )
        )
    success, truncated = end == "success", end == "timeout"
    return Trajectory(TASK, 0, turns=turns, success=success, truncated=truncated, final=final)


def group(*rollouts: tuple[str, str]) -> Group:
    """A group from (moves, end) of each rollout."""
    trajectories = [rollout(*one) for one in rollouts]
    for index, trajectory in enumerate(trajectories):
        trajectory.rollout = index
    return Group(trajectories, ("test",))


def example() -> Group:
    """The group above: 18 turns."""
    return group((R1, "success"), (R2, "success"), (R3, "timeout"), (R4, "failure"))


def credit(settings: dict, of: Group) -> list[np.ndarray]:
    """Advantages [T_k] of a group under settings as a method's file gives them."""
    return make(Settings.model_validate(settings), Context()).assign(of)


def flat(settings: dict, of: Group) -> np.ndarray:
    """The same, all turns in one array [N]."""
    return np.concatenate(credit(settings, of))


# Without the trajectory's advantage only the step credit is left.
NO_TRAJECTORY = {"trajectory": {"weight": 0}}

GIGPO = {"terms": [{"value": "mc_mean", "credit": "G-V"}]}
HGPO_TERMS = [
    {
        "key": {"history": history},
        "value": "mc_mean",
        "credit": "G-V",
        "std": "pop",
        "weight": history + 2,
    }
    for history in range(3)
]
# As published: a credit of exactly 0 does not count.
HGPO = NO_TRAJECTORY | {
    "mixture": "renormalise_present",
    "drop_zero": True,
    "terms": HGPO_TERMS,
}
TRAJECTORY_CREDIT = {"value": "none", "credit": "traj", "scope": "none"}
HGPO_BASE = HGPO | {"terms": [TRAJECTORY_CREDIT, *HGPO_TERMS]}
SALT = NO_TRAJECTORY | {"terms": [TRAJECTORY_CREDIT | {"pool": "transition"}]}
GRAPHGPO = {"scale": 10, "terms": [{"value": "dist", "credit": "dist_pow"}]}
# As published: a rollout that did not win leads to the situation it was last seen in.
GRAPHGPO_PUBLISHED = GRAPHGPO | {"timeout": "observed", "failure": "observed"}
CRBC_TERM = {
    "value": "bellman",
    "gamma": 0.98,
    "credit": "Q-V",
    "pool": "action",
    "std": "mu_pop",
    "floor": 0.1,
    "gate": "actions2",
}
CRBC = {"terms": [CRBC_TERM | {"weight": 5}]}
GRAFT_TERM = {"value": "bellman", "gamma": 0.99, "credit": "td", "gate": "sign"}
GRAFT = NO_TRAJECTORY | {"terms": [GRAFT_TERM]}
GRAPHHCA = {"terms": [{"value": "bellman", "credit": "logratio"}]}
SUCCESSOR = {"value": "mc_mean", "exp": 1, "credit": "succ"}
GAIN = {"value": "mc_mean", "exp": 1, "credit": "gain", "scope": "task"}
G2PO = {"terms": [SUCCESSOR, GAIN]}
BY_ACTION = {"value": "mc_mean", "credit": "G-V", "pool": "action"}
ECPO = {"terms": [BY_ACTION | {"shrink": 2, "variance_gate": 4}]}
# BiPACE with states that fingerprints tell apart; the example has no tokens for a policy to read.
BIPACE = {"terms": [BY_ACTION | {"lone": "loo"}]}
GAGPO_TERM = {"value": "mc_mean", "exp": 1, "credit": "td", "gae": "path", "scope": "task"}
GAGPO = NO_TRAJECTORY | {"terms": [GAGPO_TERM]}
RTMC_TERM = BY_ACTION | {"gamma": 1.0, "visits": "first", "prior": 2, "scope": "none"}
RTMC = NO_TRAJECTORY | {"terms": [RTMC_TERM]}
TURN_LOO = {"trajectory": {"mode": "loo", "rows": "alive"}}
GRPO: dict = {}

METHODS = {
    "GRPO": GRPO,
    "GiGPO": GIGPO,
    "HGPO": HGPO,
    "HGPO+base": HGPO_BASE,
    "SALT": SALT,
    "GraphGPO": GRAPHGPO,
    "CRBC": CRBC,
    "GRAFT": GRAFT,
    "GraphHCA": GRAPHHCA,
    "G2PO": G2PO,
    "ECPO": ECPO,
    "BiPACE": BIPACE,
    "GAGPO": GAGPO,
    "RTMC": RTMC,
    "TurnLOO": TURN_LOO,
}


def step_only(settings: dict) -> dict:
    """The settings without the trajectory's advantage, summed terms with weight 1."""
    if not settings.get("terms") or "mixture" in settings:
        return settings
    terms = [{**term, "weight": 1.0} for term in settings["terms"]]
    return settings | NO_TRAJECTORY | {"terms": terms}


def raw(settings: dict) -> dict:
    """The settings' first term alone, neither centred nor scaled."""
    unread = {"std", "floor", "gate", "weight"}
    term = {key: value for key, value in settings["terms"][0].items() if key not in unread}
    scale = {"scale": settings.get("scale", 1)}
    return NO_TRAJECTORY | scale | {"terms": [term | {"scope": "none"}]}
