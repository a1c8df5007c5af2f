"""Credit assigner that computes the final advantage of each turn from a graph of states."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from hgrpo.credit.base import Context, CreditAssigner, Group
from hgrpo.credit.prompt_states import prompt_states
from hgrpo.credit.state_graph.diagnostics import Tally
from hgrpo.credit.state_graph.graph import (
    Graph,
    Turns,
    build_graph,
    first_visits,
    flatten,
    observed_ends,
)
from hgrpo.credit.state_graph.keys import states, with_history
from hgrpo.credit.state_graph.normalise import (
    Normalised,
    normalise,
    rollout_advantages,
    variance_gate,
)
from hgrpo.credit.state_graph.settings import Key, Settings, Term
from hgrpo.credit.state_graph.values import returns_to_go, step_credit, term_values
from hgrpo.trajectories.trajectory import Trajectory

GIGPO = Term(value="mc_mean", credit="G-V")


class StateGraphCredit(CreditAssigner):
    """Compares turns of a group's rollouts that start in the same state.

    The credit is the final advantage, which includes the weighted advantage of the trajectory. It
    does not depend on other groups or on the order of the rollouts.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        self._tally = Tally(settings)

    def assign(self, group: Group) -> list[np.ndarray]:
        turns = flatten(group.trajectories)
        if len(turns) == 0:
            return [np.zeros(0) for _ in group.trajectories]
        rollout = rollout_advantages(turns, self.settings)
        step = self._step(group.trajectories, turns, rollout)
        advantage = self.settings.trajectory.weight * rollout + step
        return np.split(advantage, np.cumsum(turns.lengths)[:-1])

    def report(self) -> dict[str, float]:
        row = self._tally.report()
        self._tally = Tally(self.settings)
        return row

    def _step(
        self, trajectories: Sequence[Trajectory], turns: Turns, rollout: np.ndarray
    ) -> np.ndarray:
        terms = self.settings.terms
        if not terms:
            return np.zeros(len(turns))
        hidden = None
        if self.settings.needs_policy:
            hidden = prompt_states(self.context.policy, trajectories)
        graph_of = graphs(trajectories, turns, self.settings, hidden)
        # Compute diagnostics on the graph of the first term that uses one. If no term uses a graph,
        # build one with the key of the first term.
        main = graph_of(next((term.key for term in terms if term.reads_graph), terms[0].key))
        parts = [
            self._part(term, graph_of(term.key) if term.reads_graph else main, turns, rollout)
            for term in terms
        ]
        step = mixed(parts, self.settings, turns)
        gigpo = self._part(GIGPO, main, turns, rollout).credit
        self._tally.add(turns, main, parts, step, gigpo, rollout)
        return step

    def _part(self, term: Term, graph: Graph, turns: Turns, rollout: np.ndarray) -> Normalised:
        if term.visits == "first":
            graph = first_visits(graph, turns)
        values = term_values(graph, turns, term)
        raw = step_credit(term, self.settings, turns, graph, values, rollout)
        scaled = normalise(raw, graph, term)
        if term.variance_gate is None:
            return scaled
        returns = returns_to_go(turns, term.gamma, term.exp)
        weight = variance_gate(returns, graph, term.variance_gate)
        return replace(scaled, credit=weight * scaled.credit)


def graphs(
    trajectories: Sequence[Trajectory],
    turns: Turns,
    settings: Settings,
    hidden: np.ndarray | None = None,
) -> Callable[[Key], Graph]:
    """Return a cached function that maps a key to its graph.

    `hidden` [N, D] contains the policy's hidden states before the turns' replies. It is None if no
    key uses hidden states.
    """
    rules = settings.timeout, settings.failure
    ends = observed_ends(turns, *rules)
    ended = turns.rollout[ends].tolist()

    @cache
    def without_history(key: Key) -> np.ndarray:
        return states(trajectories, key, ended, hidden)

    @cache
    def graph_of(key: Key) -> Graph:
        bare = key.model_copy(update={"history": 0, "history_actions": False})
        state = with_history(without_history(bare), turns, key, ends)
        return build_graph(state, turns, *rules)

    return graph_of


def mixed(parts: Sequence[Normalised], settings: Settings, turns: Turns) -> np.ndarray:
    """Combine the scaled credits c_j of the terms, with weights w_j, into the step advantage [N].

    The mixture `sum` is sum_j w_j c_j. `renormalise_present` is the weighted mean of HGPO,
    sum_j w_j c_j / sum_j w_j, over the terms that are present at a turn ("Hierarchy-of-Groups
    Policy Optimization for Long-Horizon Agentic Tasks", https://arxiv.org/abs/2602.22817). A term
    is present at a turn if `Normalised.present` is True and the turn has at least `key.history`
    earlier turns. With `drop_zero`, a term whose credit is exactly 0 is not present, as in HGPO's
    code. If no term is present at a turn, the result is 0.
    """
    total = np.zeros(len(turns))
    if settings.mixture == "sum":
        for part, term in zip(parts, settings.terms, strict=True):
            total += term.weight * part.credit
        return total
    weights = np.zeros(len(turns))
    for part, term in zip(parts, settings.terms, strict=True):
        present = part.present & (turns.time >= term.key.history)
        if settings.drop_zero:
            present &= part.credit != 0
        weight = term.weight * present
        total += weight * part.credit
        weights += weight
    return np.divide(total, weights, out=np.zeros(len(turns)), where=weights > 0)
