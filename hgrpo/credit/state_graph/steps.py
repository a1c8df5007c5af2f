"""Computes the raw credit of turns, which `normalise` scales afterwards."""

import numpy as np
from scipy.sparse import csr_array

from hgrpo.credit.state_graph.graph import Graph, Turns, means, numbered, sums
from hgrpo.credit.state_graph.normalise import action_factor
from hgrpo.credit.state_graph.settings import Settings, Term
from hgrpo.credit.state_graph.values import Values, returns_to_go


def step_credit(
    term: Term,
    settings: Settings,
    turns: Turns,
    graph: Graph,
    values: Values | None,
    rollout: np.ndarray,
) -> np.ndarray:
    """Raw credit of each turn, averaged over the turns that the term pools, [N].

    A turn that is not counted has no successor, so it gets nan from credits that depend on the
    successor. If the term pools it with counted turns, it gets their mean instead. Only credit
    `traj` reads `rollout`, the advantage of each turn's rollout [N]. The others read `values`.
    """
    scored = term.credit == "traj"
    raw = rollout if scored else _value_credit(term, settings, turns, graph, values)
    if term.pool == "transition":
        transition = numbered(graph.transition.tolist())
        size = int(transition.max(initial=-1)) + 1
        return means(raw, transition, size, graph.counted)[transition]
    if term.pool == "action" and term.credit != "Q-V":
        pooled = means(raw, graph.pair, graph.n_pairs, graph.counted)[graph.pair]
        return pooled * action_factor(graph, term.shrink, term.lone)
    return raw


def _value_credit(
    term: Term, settings: Settings, turns: Turns, graph: Graph, values: Values
) -> np.ndarray:
    here = values.state[graph.state]
    there = np.where(graph.counted, values.state[graph.successor], np.nan)
    scale = settings.scale
    match term.credit:
        case "G-V":
            credit = scale * (returns_to_go(turns, term.gamma, term.exp) - here)
            return credit - _penalty(settings, turns, "row")
        case "Q-V":
            return scale * (values.action[graph.pair] - here)
        case "td":
            td = term.gamma * there - here
            if term.gae != "none":
                td = with_later_errors(td, graph, turns, term.gae, term.gamma * term.gae_lambda)
            return scale * td
        case "gain":
            return scale * (there - here)
        case "succ":
            return scale * there - _penalty(settings, turns, "succ")
        case "dist_pow":
            return scale * there
        case _:
            floor = term.log_floor
            return np.log(np.maximum(there, floor)) - np.log(np.maximum(here, floor))


def _penalty(settings: Settings, turns: Turns, rule: str) -> np.ndarray:
    return settings.penalty * (turns.inadmissible & (settings.invalid == rule))


def with_later_errors(
    td: np.ndarray, graph: Graph, turns: Turns, mode: str, decay: float
) -> np.ndarray:
    """Each turn's TD error plus decayed later TD errors, [N]; `decay` is gamma * lambda.

    `path` adds the later errors of the turn's own rollout ("High-Dimensional Continuous Control
    Using Generalized Advantage Estimation", https://arxiv.org/abs/1506.02438). The other modes are
    GRAFT's Graph-GAE (2026). They look k transitions ahead, for each k from 1 to the number of
    turns that follow in the rollout. The states ahead are all ends of paths of k transitions that
    begin with the turn's own transition. The modes add decay^k times the mean error of transitions
    that leave these states. `instances` averages over turns, `distinct` over different (state,
    action, successor) triples.

    With Bellman values of depth inf, agg 1, mu count and no clamped state, the errors of each state
    average to 0, so `instances` adds nothing.

    A turn that is not counted gets nan and adds nothing to other turns.
    """
    if mode == "path":
        return _path(td, turns, decay)
    counted = np.flatnonzero(graph.counted)
    if mode == "distinct":
        counted = counted[np.unique(graph.transition[counted], return_index=True)[1]]
    return _frontier(td, counted, graph, turns, decay)


def _path(td: np.ndarray, turns: Turns, decay: float) -> np.ndarray:
    result = np.nan_to_num(td)
    remaining = turns.remaining
    for ahead in range(1, int(remaining.max()) + 1):
        here = np.flatnonzero(remaining == ahead)
        result[here] += decay * result[here + 1]
    result[np.isnan(td)] = np.nan
    return result


def _frontier(
    td: np.ndarray, edges: np.ndarray, graph: Graph, turns: Turns, decay: float
) -> np.ndarray:
    """TD errors extended by Graph-GAE, [N]; `edges`, int [E], are the turns to average over."""
    n, states = graph.n_states, graph.n_states + 2
    error = sums(td[edges], graph.state[edges], states)
    number = np.bincount(graph.state[edges], minlength=states).astype(np.float64)
    inner = edges[graph.successor[edges] < n]
    step = csr_array(
        (np.ones(len(inner)), (graph.successor[inner], graph.state[inner])), shape=(states, states)
    )
    remaining = turns.remaining
    result = td.copy()
    # reached[y, x]: whether some path of exactly k - 1 transitions leads from x to y.
    reached = np.eye(states)
    for k in range(1, int(remaining.max()) + 1):
        number_ahead = number @ reached
        mean = np.divide(
            error @ reached, number_ahead, out=np.zeros(states), where=number_ahead > 0
        )
        result += np.where(remaining >= k, decay**k * mean[graph.successor], 0.0)
        reached = (step @ reached > 0).astype(np.float64)
    return result
