"""Adds later TD errors to each turn's own TD error: three versions of GAE."""

import numpy as np
from scipy.sparse import csr_array

from hgrpo.credit.state_graph.graph import Graph, Turns, sums


def extended(td: np.ndarray, graph: Graph, turns: Turns, mode: str, decay: float) -> np.ndarray:
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
