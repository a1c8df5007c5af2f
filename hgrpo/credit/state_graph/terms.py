"""Mixes the credits of several terms into one step advantage."""

from collections.abc import Sequence

import numpy as np

from hgrpo.credit.state_graph.normalise import Normalised
from hgrpo.credit.state_graph.settings import Settings, Term
from hgrpo.credit.state_graph.turns import Turns


def mixed(parts: Sequence[Normalised], settings: Settings, turns: Turns) -> np.ndarray:
    """Step advantage [N]: the weighted credits of the terms.

    `sum` is sum_j w_j c_j. `renormalise_present` is the weighted mean of HGPO, sum_j w_j c_j /
    sum_j w_j, over the terms that are present at a turn ("Hierarchy-of-Groups Policy Optimization
    for Long-Horizon Agentic Tasks", https://arxiv.org/abs/2602.22817). A term is present if the
    turn has as much history as its key asks for, and others to compare with. With `drop_zero` a
    term whose credit is exactly 0 counts as absent, as in HGPO's code. A turn without a present
    term gets 0.
    """
    total = np.zeros(len(turns))
    if settings.mixture == "sum":
        for part, term in zip(parts, settings.terms, strict=True):
            total += term.weight * part.credit
        return total
    weights = np.zeros(len(turns))
    for part, term in zip(parts, settings.terms, strict=True):
        weight = term.weight * _present(part, term, turns, settings.drop_zero)
        total += weight * part.credit
        weights += weight
    return np.divide(total, weights, out=np.zeros(len(turns)), where=weights > 0)


def _present(part: Normalised, term: Term, turns: Turns, drop_zero: bool) -> np.ndarray:
    present = part.present & (turns.time >= term.key.history)
    return present & (part.credit != 0) if drop_zero else present
