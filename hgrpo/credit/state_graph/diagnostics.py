"""Diagnostics of the step advantage, such as its correlation with GiGPO's step advantage."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from hgrpo.credit.state_graph.graph import Graph, Turns
from hgrpo.credit.state_graph.normalise import Normalised
from hgrpo.credit.state_graph.settings import Settings


class Correlation:
    """Accumulates the Pearson correlation of two series in chunks."""

    def __init__(self) -> None:
        self._moments = np.zeros((3, 3))

    def add(self, x: np.ndarray, y: np.ndarray) -> None:
        """Add a chunk of both series, [n] each."""
        rows = np.stack([np.ones(len(x)), x, y])
        self._moments += rows @ rows.T

    def value(self) -> float | None:
        """Return the correlation over all chunks so far, or None if either series is constant."""
        n = max(self._moments[0, 0], 1.0)
        mean = self._moments[0, 1:] / n
        covariance = self._moments[1:, 1:] / n - np.outer(mean, mean)
        spread = covariance[0, 0] * covariance[1, 1]
        if min(covariance[0, 0], covariance[1, 1]) < 1e-12:
            return None
        return float(np.clip(covariance[0, 1] / np.sqrt(spread), -1.0, 1.0))


class Tally:
    """Accumulates diagnostics of the groups whose credit was computed since the last report."""

    def __init__(self, settings: Settings) -> None:
        self._weight = settings.trajectory.weight
        self._floors = any(term.floor is not None for term in settings.terms)
        self._sums: Counter[str] = Counter()
        self._to_gigpo, self._to_grpo = Correlation(), Correlation()

    def add(
        self,
        turns: Turns,
        graph: Graph,
        parts: Sequence[Normalised],
        step: np.ndarray,
        gigpo: np.ndarray,
        grpo: np.ndarray,
    ) -> None:
        """Add one group of N turns.

        Args:
            turns: the group's turns.
            graph: the state graph that determines visits and successors.
            parts: the scaled credits of every term.
            step: step advantage [N], as returned by `mixed`.
            gigpo: GiGPO's step advantage on the same graph, [N].
            grpo: trajectory advantage of each turn's rollout, [N].
        """
        visits = np.bincount(graph.state, minlength=graph.n_states)
        first = np.unique(graph.transition[graph.counted], return_index=True)[1]
        ways = np.bincount(graph.pair[graph.counted][first], minlength=graph.n_pairs)
        self._sums.update(
            turns=len(turns),
            nonzero=np.count_nonzero(step),
            single=np.count_nonzero(visits == 1),
            one_rollout=visits[_one_rollout(turns, graph)].sum(),
            floored=np.logical_or.reduce([part.floored for part in parts]).sum(),
            pairs=graph.n_pairs,
            stochastic=np.count_nonzero(ways > 1),
            step=np.abs(step).sum(),
            rollout=self._weight * np.abs(grpo).sum(),
        )
        self._to_gigpo.add(step, gigpo)
        self._to_grpo.add(step, grpo)

    def report(self) -> dict[str, float]:
        """Return the log entries; undefined entries are omitted.

        - `step_nonzero_share`: share of turns with a nonzero step advantage
        - `state_single_share`: share of turns in a state with a single visit
        - `state_one_rollout_share`: share of turns in a state that only one rollout visited
        - `step_floored_share`: share of turns at which any term's credit was divided by `floor`
        - `action_stochastic_share`: share of (state, action) pairs with several successors
        - `step_to_trajectory`: mean |step advantage| / mean |weighted trajectory advantage|
        - `step_corr_gigpo`: Pearson correlation with GiGPO's step advantage on the same graph
        - `step_corr_grpo`: Pearson correlation with the trajectory advantage
        """
        sums = self._sums
        if not sums["turns"]:
            return {}
        numbers = {
            "step_nonzero_share": sums["nonzero"] / sums["turns"],
            "state_single_share": sums["single"] / sums["turns"],
            "state_one_rollout_share": sums["one_rollout"] / sums["turns"],
            "action_stochastic_share": sums["stochastic"] / sums["pairs"],
            "step_floored_share": sums["floored"] / sums["turns"] if self._floors else None,
            "step_to_trajectory": sums["step"] / sums["rollout"] if sums["rollout"] else None,
            "step_corr_gigpo": self._to_gigpo.value(),
            "step_corr_grpo": self._to_grpo.value(),
        }
        return {name: float(value) for name, value in numbers.items() if value is not None}


def _one_rollout(turns: Turns, graph: Graph) -> np.ndarray:
    visitors = np.unique(graph.state * len(turns.lengths) + turns.rollout)
    return np.bincount(visitors // len(turns.lengths), minlength=graph.n_states) == 1
