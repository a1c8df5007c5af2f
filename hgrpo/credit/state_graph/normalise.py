"""Credits made comparable: centred and scaled over the turns of a state or of the task."""

from dataclasses import dataclass

import numpy as np

from hgrpo.credit.state_graph.buckets import means, sums
from hgrpo.credit.state_graph.graph import Graph
from hgrpo.credit.state_graph.settings import Term

EPS = 1e-6
# A deviation below this is rounding of equal values.
ZERO = 1e-12
# So is a single credit below this: the sign rule would blow it up to 1.
ZERO_SIGN = 1e-9


@dataclass(frozen=True)
class Normalised:
    """Credits [N]; whether each had anything to compare with [N]; whether the floor bound [N]."""

    credit: np.ndarray
    present: np.ndarray
    floored: np.ndarray


def normalise(raw: np.ndarray, graph: Graph, term: Term) -> Normalised:
    """Scale raw credits [N], nan where a turn has none, as the term's scope, std and gate say.

    Statistics are over counted turns. A bucket of equal credits, and a turn without comparison,
    get exactly 0.
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
    speaks = spread >= ZERO
    present = defined
    if by_state:
        gate = graph.actions >= 2 if term.gate == "actions2" else visits >= 2
        speaks = speaks & gate
        present = defined & (gate[bucket] | (term.gate == "sign"))
    credit = np.where(defined & speaks[bucket], centred / divisor[bucket], 0.0)
    if by_state and term.gate == "sign":
        alone = defined & (visits == 1)[bucket] & (np.abs(raw) >= ZERO_SIGN)
        credit = np.where(alone, np.sign(raw), credit)
    floored = np.zeros(size, dtype=bool) if term.floor is None else speaks & (spread < term.floor)
    return Normalised(credit, present, floored[bucket])


def _divisor(spread: np.ndarray, term: Term) -> np.ndarray:
    if term.std == "none":
        return np.ones(len(spread))
    if term.floor is None:
        return spread + EPS
    return np.maximum(spread, term.floor)
