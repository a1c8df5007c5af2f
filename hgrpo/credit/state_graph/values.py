"""Computes values of states and actions, and uses them to compute the raw credit of turns.

Values are mean returns, results of Bellman backups, or functions of the distance to success. The
only reward is 1 at the end of a successful rollout. Rewards of the environment are ignored.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import splu

from hgrpo.credit.state_graph.graph import Graph, Turns, means, numbered, sums
from hgrpo.credit.state_graph.normalise import action_factor
from hgrpo.credit.state_graph.settings import Settings, Term


@dataclass(frozen=True)
class Values:
    """Values of states and of (state, action) pairs.

    Attributes:
        state: float [S + 2], values of the states, of the success sink and of the failure sink.
            States without counted turns have the value 0, unless `value` is `dist`.
        action: float [n_pairs], values of the pairs. The value of a pair without counted turns is
            NaN. With `value: dist`, the values of all pairs are NaN.
    """

    state: np.ndarray
    action: np.ndarray


def term_values(graph: Graph, turns: Turns, term: Term) -> Values | None:
    """Compute the values that a term uses; None if the term does not use values."""
    match term.value:
        case "mc_mean":
            values = mc_mean(graph, returns_to_go(turns, term.gamma, term.exp))
            return with_prior(values, graph, turns, term.prior) if term.prior else values
        case "bellman":
            return bellman(graph, turns, term.gamma, term.depth, term.agg, term.mu)
        case "dist":
            return distance_values(graph, term.base, term.exp)
    return None


def returns_to_go(turns: Turns, gamma: float, exp: int) -> np.ndarray:
    """Return each turn's return-to-go G = gamma^(remaining turns + exp) * success, [N]."""
    return gamma ** (turns.remaining + exp) * turns.success[turns.rollout]


def mc_mean(graph: Graph, returns: np.ndarray) -> Values:
    """Compute values as means of `returns` [N] over counted turns, as in GiGPO and G2PO.

    "Group-in-Group Policy Optimization for LLM Agent Training", https://arxiv.org/abs/2505.10978;
    "Group-Graph Policy Optimization for Long-Horizon Agentic Reinforcement Learning",
    https://arxiv.org/abs/2606.22995.
    """
    state = means(returns, graph.state, graph.n_states, graph.counted, empty=0.0)
    action = means(returns, graph.pair, graph.n_pairs, graph.counted)
    return Values(_with_sinks(state), action)


def with_prior(values: Values, graph: Graph, turns: Turns, prior: float) -> Values:
    """Shrink state values towards the group's success rate p: (n V + prior p) / (n + prior).

    n is the number of counted turns in the state. No discounting is applied to p. This is the
    smoothed baseline of RTMC ("RTMC: Step-Level Credit Assignment via Rollout Trees",
    https://arxiv.org/abs/2604.11037).
    """
    visits = graph.visits
    state = values.state.copy()
    mean = state[: graph.n_states]
    state[: graph.n_states] = (visits * mean + prior * turns.success.mean()) / (visits + prior)
    return Values(state, values.action)


def bellman(
    graph: Graph, turns: Turns, gamma: float, depth: int | str, agg: float | str, mu: str
) -> Values:
    """Solve V(s) = gamma * M(V(x)) and Q(s, a) = gamma * mean(V(x)) by Bellman backups.

    The means are over the successors x (states or sinks) of s. M is the power mean of order `agg`
    with weights mu(a|s) P(x|s,a), or the maximum if `agg` is "max". See `Graph.shares` for `mu`.
    Clamped states have the value 0 in every backup.

    If `depth` is "inf", V is the fixed point, as in CRBC, GRAFT and GraphHCA (2026), all of which
    use agg 1. If `depth` is K, V is the result of K backups that start from mean returns, as in
    CRBC, and Q is computed from the result of the first K - 1 backups.

    Raises:
        RuntimeError: the fixed point is not unique, because gamma is 1 and a loop has no exit.
    """
    if agg == "max":
        steps = distances(graph)
        return _acting_on(graph, gamma, np.where(np.isfinite(steps), gamma**steps, 0.0))
    shares = graph.shares(mu) * graph.backed_up
    # The power mean of V is an arithmetic mean of V^agg, so the backup is linear in V^agg.
    discount = gamma**agg
    if depth == "inf":
        powered = _with_sinks(_fixed_point(graph, shares, discount))
        return _acting_on(graph, gamma, powered ** (1 / agg))
    start = mc_mean(graph, returns_to_go(turns, gamma, 1))
    start.state[graph.clamped] = 0.0
    if depth == 0:
        return start
    powered = before = start.state**agg
    for _ in range(depth):
        before = powered
        ahead = shares * before[graph.successor]
        powered = _with_sinks(discount * sums(ahead, graph.state, graph.n_states))
    action = _acting_on(graph, gamma, before ** (1 / agg)).action
    return Values(powered ** (1 / agg), action)


def distances(graph: Graph) -> np.ndarray:
    """Return each state's and sink's distance to success in turns, [S + 2]; inf if unreachable."""
    size = graph.n_states + 2
    used = graph.backed_up
    backwards = (graph.successor[used], graph.state[used])
    edges = csr_array((np.ones(len(backwards[0])), backwards), shape=(size, size))
    return dijkstra(edges, indices=graph.success, unweighted=True)


def distance_values(graph: Graph, base: float, exp: int) -> Values:
    """Return V(s) = base^(distance to success + exp), as in GraphGPO.

    "Beyond Trajectory-Level Attribution: Graph-Based Credit Assignment for Agentic Reinforcement
    Learning", https://arxiv.org/abs/2605.26684. The paper has exp = 1, and its code has exp = 0.

    If a state has no path to success, its distance is the largest finite distance plus 1.
    """
    steps = distances(graph)
    known = np.isfinite(steps)
    steps[~known] = steps[known].max() + 1
    return Values(base ** (steps + exp), np.full(graph.n_pairs, np.nan))


def _fixed_point(graph: Graph, shares: np.ndarray, discount: float) -> np.ndarray:
    """Solve V = discount * (M V + m) for V [S].

    M [S, S] contains the weights of transitions between states, and m [S] contains the weights of
    transitions to success.
    """
    n = graph.n_states
    inner = graph.backed_up & (graph.successor < n)
    won = graph.successor == graph.success
    entries = np.concatenate([np.ones(n), -discount * shares[inner]])
    rows = np.concatenate([np.arange(n), graph.state[inner]])
    columns = np.concatenate([np.arange(n), graph.successor[inner]])
    matrix = csc_array((entries, (rows, columns)), shape=(n, n))
    # For an M-matrix such as this, diagonal pivots avoid cancellation, so that values are >= 0.
    factors = splu(matrix, diag_pivot_thresh=0.0)
    return factors.solve(discount * sums(shares * won, graph.state, n))


def _acting_on(graph: Graph, gamma: float, state: np.ndarray) -> Values:
    ahead = gamma * state[graph.successor]
    return Values(state, means(ahead, graph.pair, graph.n_pairs, graph.counted))


def _with_sinks(state: np.ndarray) -> np.ndarray:
    return np.concatenate([state, [1.0, 0.0]])


def step_credit(
    term: Term,
    settings: Settings,
    turns: Turns,
    graph: Graph,
    values: Values | None,
    rollout: np.ndarray,
) -> np.ndarray:
    """Return the raw credit of each turn, [N], averaged over turns as set by `term.pool`.

    A turn that is not counted has no known successor. If credit depends on the successor, such a
    turn gets the mean credit of the counted turns in its pool, or NaN if there are none. Credit
    `traj` is computed from `rollout` [N], the advantage of each turn's rollout. All other credits
    are computed from `values`.
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
    """Return each turn's TD error plus decayed later TD errors, [N]; `decay` is gamma * lambda.

    Mode `path` adds the later errors of the turn's own rollout ("High-Dimensional Continuous
    Control Using Generalized Advantage Estimation", https://arxiv.org/abs/1506.02438). The other
    modes are Graph-GAE from GRAFT (2026). For each k from 1 to the number of remaining turns in the
    rollout, they find all states that can be reached in exactly k transitions, starting with the
    turn's own transition. They add decay^k times the mean error of the transitions from these
    states. `instances` averages over turns, `distinct` over (state, action, successor) triples.

    With Bellman values of depth inf, agg 1 and mu count, `instances` adds nothing if no state is
    clamped, because the mean error in each state is 0.

    A turn that is not counted gets NaN, and its error is not added to other turns.
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
    """Add later errors as in Graph-GAE, [N]. Means are over the turns in `edges`, int [E]."""
    n, states = graph.n_states, graph.n_states + 2
    error = sums(td[edges], graph.state[edges], states)
    number = np.bincount(graph.state[edges], minlength=states).astype(np.float64)
    inner = edges[graph.successor[edges] < n]
    step = csr_array(
        (np.ones(len(inner)), (graph.successor[inner], graph.state[inner])), shape=(states, states)
    )
    remaining = turns.remaining
    result = td.copy()
    # reached[y, x]: 1 if a path of exactly k - 1 transitions leads from x to y, else 0.
    reached = np.eye(states)
    for k in range(1, int(remaining.max()) + 1):
        number_ahead = number @ reached
        mean = np.divide(
            error @ reached, number_ahead, out=np.zeros(states), where=number_ahead > 0
        )
        result += np.where(remaining >= k, decay**k * mean[graph.successor], 0.0)
        reached = (step @ reached > 0).astype(np.float64)
    return result
