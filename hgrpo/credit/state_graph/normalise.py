"""Centres, scales and weights the credit of turns, and computes the advantages of rollouts."""

from dataclasses import dataclass

import numpy as np

from hgrpo.credit.state_graph.graph import Graph, Turns, means, sums
from hgrpo.credit.state_graph.settings import Settings, Term

EPS = 1e-6
# Standard deviations below this value are treated as rounding errors of equal values.
ZERO = 1e-12
# With `gate: sign`, a credit whose absolute value is below this limit counts as 0.
ZERO_SIGN = 1e-9


@dataclass(frozen=True)
class Normalised:
    """Scaled credits of N turns.

    Attributes:
        credit: float [N].
        present: bool [N], True if the turn's raw credit is defined and, with `scope: state`, the
            turn's state passes the gate.
        floored: bool [N], True if credit was divided by `floor`, not by the standard deviation.
    """

    credit: np.ndarray
    present: np.ndarray
    floored: np.ndarray


def normalise(raw: np.ndarray, graph: Graph, term: Term) -> Normalised:
    """Normalise raw credits [N] as set by the term's `scope`, `std` and `gate`.

    NaN becomes 0. With `scope: none`, all other credits are unchanged. Otherwise, credits are
    normalised over the turns of a state (`state`) or of the group (`task`), with the mean and
    deviation of counted turns. Equal credits become exactly 0, as do credits in states that do not
    pass the gate. There are two exceptions. First, `std: mu_pop` does not subtract the mean, so
    equal credits do not become 0. Second, with `gate: sign`, a turn that is the only one in its
    state gets the sign of its credit.
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
    """Return the factor by which the mean credit Q - V of each turn's action is multiplied, [N].

    m is the number of counted turns in the turn's state, and n of these have the turn's action.

    - `shrink`: the factor is n / (n + shrink). This shrinks the action's value towards the state's
      value, to (n Q + shrink V) / (n + shrink), as in ECPO ("When Denser Credit Is Not Enough:
      Evidence-Calibrated Policy Optimization for Long-Horizon LLM Agent Training",
      https://arxiv.org/abs/2606.05885).
    - `lone: loo`: if n is 1 and m > 1, the factor is m / (m - 1). The baseline is then the mean
      return of the m - 1 other turns, as in BiPACE ("Bisimulation-Guided Policy Optimization with
      Action Counterfactual Estimation for LLM Agents", https://arxiv.org/abs/2606.25556).
    """
    taken = sums(graph.counted, graph.pair, graph.n_pairs)[graph.pair]
    if shrink:
        return taken / (taken + shrink)
    visits = graph.visits[graph.state]
    compared = (lone == "loo") & (taken == 1) & (visits > 1)
    return np.divide(visits, visits - 1, out=np.ones(len(visits)), where=compared)


def variance_gate(returns: np.ndarray, graph: Graph, scale: float) -> np.ndarray:
    """Return the weight tanh(m / scale) * B / (B + W + 1e-6) of each turn's state, [N], as in ECPO.

    m is the number of counted turns in the state. B is the variance of mean returns between the
    state's actions. W is the variance of `returns` [N] within an action, averaged over actions. In
    B and W, every action is weighted by its number of turns. ECPO is cited in `action_factor`.
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

    `rows` sets the scores from which the mean and deviation are computed. `once` uses one score per
    rollout, and `cross_steps` one score per turn. `alive` computes a mean and deviation for each
    turn number, from the rollouts that reached it. All turns of a rollout have the same score,
    except with `invalid: row`, where an inadmissible action reduces the score of its turn.

    `mode` is one of:
    - `mean`: subtract the mean score.
    - `mean_std`: GRPO ("DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language
      Models", https://arxiv.org/abs/2402.03300), with the sample standard deviation (n - 1).
    - `loo`: RLOO ("Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human
      Feedback in LLMs", https://arxiv.org/abs/2402.14740), i.e. subtract the mean of the other
      scores. If there are no other scores, `lone` determines the advantage.
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
    """Return the advantage of each rollout at turn numbers that only this rollout reached, [K]."""
    others = (scores.sum() - scores) / max(1, len(scores) - 1)
    return scores - {"zero": scores, "return": 0.0, "group": others}[rule]


def _advantages(scores: np.ndarray, mode: str, lone: np.ndarray) -> np.ndarray:
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
