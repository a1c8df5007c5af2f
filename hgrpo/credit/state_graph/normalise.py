"""Centres, scales and weights the credit of turns, and computes the advantages of rollouts."""

from dataclasses import dataclass

import numpy as np

from hgrpo.credit.state_graph.graph import Graph, Turns, means, sums
from hgrpo.credit.state_graph.settings import Settings, Term

EPS = 1e-6
# Treat a standard deviation below this as 0, because equal values may differ by rounding.
ZERO = 1e-12
# `gate: sign` treats an absolute credit below this as 0, so that rounding errors do not become +-1.
ZERO_SIGN = 1e-9


@dataclass(frozen=True)
class Normalised:
    """Scaled credits of N turns.

    Attributes:
        credit: float [N].
        present: bool [N], whether the turn's raw credit is defined and, with `scope: state`, its
            state passes the gate.
        floored: bool [N], whether the floor was used as divisor instead of the deviation.
    """

    credit: np.ndarray
    present: np.ndarray
    floored: np.ndarray


def normalise(raw: np.ndarray, graph: Graph, term: Term) -> Normalised:
    """Scale raw credits by the term's scope, std and gate.

    Raw credits are [N]; turns with NaN have no credit and get 0. Scope `none` leaves all other
    credits unchanged. The other scopes normalise over the turns of a state or of the group, with
    statistics over counted turns. The result is exactly 0 if all credits in the scope are equal or
    the state does not pass the gate. There are two exceptions: `std: mu_pop` does not centre, so
    equal credits do not become 0, and with `gate: sign`, the only turn of a state gets the sign of
    its credit.
    """
    defined = ~np.isnan(raw)
    raw = np.where(defined, raw, 0.0)
    if term.scope == "none":
        return Normalised(raw, defined, np.zeros(len(raw), dtype=bool))
    by_state = term.scope == "state"
    bucket = graph.state if by_state else np.zeros(len(raw), dtype=np.int64)
    size = graph.n_states if by_state else 1
    counted = graph.counted
    visits = sums(counted, bucket, size)
    if term.std == "mu_pop":
        centred = raw
        spread = np.sqrt(sums(graph.shares(term.mu) * raw**2, bucket, size))
    else:
        centre = means(raw, bucket, size, counted, empty=0.0)
        centred = raw - centre[bucket]
        free = np.maximum(visits - (term.std == "sample"), 1)
        spread = np.sqrt(sums(counted * centred**2, bucket, size) / free)
    divisor = _divisor(spread, term)
    differs = spread >= ZERO
    present = defined
    if by_state:
        gate = graph.actions >= 2 if term.gate == "actions2" else visits >= 2
        differs = differs & gate
        present = defined & (gate[bucket] | (term.gate == "sign"))
    credit = np.where(defined & differs[bucket], centred / divisor[bucket], 0.0)
    if by_state and term.gate == "sign":
        alone = defined & (visits == 1)[bucket] & (np.abs(raw) >= ZERO_SIGN)
        credit = np.where(alone, np.sign(raw), credit)
    floored = np.zeros(size, dtype=bool) if term.floor is None else differs & (spread < term.floor)
    return Normalised(credit, present, floored[bucket])


def _divisor(spread: np.ndarray, term: Term) -> np.ndarray:
    if term.std == "none":
        return np.ones(len(spread))
    if term.floor is None:
        return spread + EPS
    return np.maximum(spread, term.floor)


def action_factor(graph: Graph, shrink: float, lone: str) -> np.ndarray:
    """Return the factor for the mean credit Q - V of each turn's action, [N].

    n is the number of counted turns with the turn's state and action. `shrink` moves the action's
    value towards the state's, (n Q + shrink V) / (n + shrink), as in ECPO ("When Denser Credit Is
    Not Enough: Evidence-Calibrated Policy Optimization for Long-Horizon LLM Agent Training",
    https://arxiv.org/abs/2606.05885). Minus V, this is n / (n + shrink) times Q - V. With `lone:
    loo`, an action taken once is compared with the m - 1 other visits to its state only, as in
    BiPACE ("Bisimulation-Guided Policy Optimization with Action Counterfactual Estimation for LLM
    Agents", https://arxiv.org/abs/2606.25556). This is m / (m - 1) times G - V.
    """
    taken = sums(graph.counted, graph.pair, graph.n_pairs)[graph.pair]
    if shrink:
        return taken / (taken + shrink)
    visits = graph.visits[graph.state]
    compared = (lone == "loo") & (taken == 1) & (visits > 1)
    return np.divide(visits, visits - 1, out=np.ones(len(visits)), where=compared)


def variance_gate(returns: np.ndarray, graph: Graph, scale: float) -> np.ndarray:
    """Return the weight tanh(m / scale) * B / (B + W + 1e-6) of each turn's state, [N], as in ECPO.

    m is the number of counted turns in the state. B is the variance of the actions' mean returns,
    and W the mean over actions of the variance of an action's `returns` [N], both weighted by the
    number of turns with the action. See `action_factor` for ECPO's paper.
    """
    counted = graph.counted
    state = means(returns, graph.state, graph.n_states, counted, empty=0.0)[graph.state]
    action = means(returns, graph.pair, graph.n_pairs, counted, empty=0.0)[graph.pair]
    between = means((action - state) ** 2, graph.state, graph.n_states, counted, empty=0.0)
    within = means((returns - action) ** 2, graph.state, graph.n_states, counted, empty=0.0)
    weight = np.tanh(graph.visits / scale) * between / (between + within + EPS)
    return weight[graph.state]


def rollout_advantages(turns: Turns, settings: Settings) -> np.ndarray:
    """Return the advantage A_traj of each turn's rollout, [N]; 0 if all scores are equal.

    Statistics are over one score per rollout with rows `once`, and one per turn with `cross_steps`.
    With `alive`, each turn number has separate statistics over the rollouts that reached it. Scores
    differ between the turns of a rollout only with `invalid: row`, where an inadmissible action
    lowers the score of its own turn. Mode `mean` subtracts the mean score. Mode `mean_std` is GRPO
    ("DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    https://arxiv.org/abs/2402.03300) with the sample deviation (n - 1). Mode `loo` is RLOO ("Back
    to Basics: Revisiting REINFORCE Style Optimization for Learning from Human Feedback in LLMs",
    https://arxiv.org/abs/2402.14740): the score minus the mean of the other scores, or
    the advantage by rule `lone` if there are no other scores.
    """
    rule = settings.trajectory
    scores = settings.scale * turns.success
    if settings.invalid == "propagate":
        scores = scores - settings.penalty * np.bincount(
            turns.rollout, weights=turns.inadmissible, minlength=len(turns.lengths)
        )
    if rule.rows == "once":
        return _advantages(scores, rule.mode, _lone(scores, rule.lone))[turns.rollout]
    rows = scores[turns.rollout]
    if rule.rows == "alive":
        result, lone = np.zeros(len(turns)), _lone(scores, rule.lone)[turns.rollout]
        for time in range(int(turns.time.max()) + 1):
            here = turns.time == time
            result[here] = _advantages(rows[here], rule.mode, lone[here])
        return result
    if settings.invalid == "row":
        rows = rows - settings.penalty * turns.inadmissible
    return _advantages(rows, rule.mode, np.zeros(len(rows)))


def _lone(scores: np.ndarray, rule: str) -> np.ndarray:
    """Return the advantage [K] of each rollout at turn numbers that no other rollout reached."""
    others = (scores.sum() - scores) / max(1, len(scores) - 1)
    return scores - {"zero": scores, "return": 0.0, "group": others}[rule]


def _advantages(scores: np.ndarray, mode: str, lone: np.ndarray) -> np.ndarray:
    """Return advantages [n] from scores [n], or `lone` [n] if n is 1."""
    if len(scores) < 2:
        return lone
    if (deviation := scores.std(ddof=1)) < ZERO:
        return np.zeros(len(scores))
    centred = scores - scores.mean()
    if mode == "mean":
        return centred
    if mode == "loo":
        return centred * len(scores) / (len(scores) - 1)
    return centred / (deviation + EPS)
