"""Computes the raw credit of turns, which `normalise` scales afterwards."""

import numpy as np

from hgrpo.credit.state_graph.gae import extended
from hgrpo.credit.state_graph.graph import Graph, Turns, means, numbered
from hgrpo.credit.state_graph.normalise import action_factor
from hgrpo.credit.state_graph.settings import Settings
from hgrpo.credit.state_graph.terms import Term
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
    own = term.credit == "traj"
    raw = rollout if own else _value_credit(term, settings, turns, graph, values)
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
                td = extended(td, graph, turns, term.gae, term.gamma * term.gae_lambda)
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
