"""The graph of a group: who went from which state, by which action, to which state.

N(s, a, x) counts occurrences, repeats inside a rollout included. Counts are not stored: every turn
is one occurrence, so sums over turns are sums weighted by counts.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hgrpo.credit.state_graph.buckets import sums
from hgrpo.credit.state_graph.turns import Turns

UNKNOWN = -1


@dataclass(frozen=True)
class Graph:
    """One transition per turn, between S states and two sinks.

    Attributes:
        state: int [N], 0..S-1.
        pair: int [N], number of the turn's (state, action), 0..n_pairs-1.
        successor: int [N], the state that followed; `success`, `failure`, or UNKNOWN for a turn
            that is not counted.
    """

    n_states: int
    n_pairs: int
    state: np.ndarray
    pair: np.ndarray
    successor: np.ndarray

    @property
    def success(self) -> int:
        """The sink of value 1."""
        return self.n_states

    @property
    def failure(self) -> int:
        """The sink of value 0."""
        return self.n_states + 1

    @cached_property
    def counted(self) -> np.ndarray:
        """Bool [N]: turns that enter counts, values and statistics."""
        return self.successor != UNKNOWN

    @cached_property
    def transition(self) -> np.ndarray:
        """Int [N], equal where state, action and successor are."""
        return self.pair * (self.n_states + 3) + self.successor + 1

    @cached_property
    def visits(self) -> np.ndarray:
        """N(s), float [S]."""
        return sums(self.counted, self.state, self.n_states)

    @cached_property
    def actions(self) -> np.ndarray:
        """Number of different actions seen in each state, int [S]."""
        first = np.unique(self.pair[self.counted], return_index=True)[1]
        return np.bincount(self.state[self.counted][first], minlength=self.n_states)

    def shares(self, mu: str) -> np.ndarray:
        """mu(a|s) P(x|s,a) / N(s,a,x) [N]: weights of the turns that leave a state, summing to 1.

        `count` weighs actions as often as they were taken, `uniform` all the same. A turn that
        is not counted weighs 0.
        """
        if mu == "count":
            weight = self.visits[self.state]
        else:
            taken = sums(self.counted, self.pair, self.n_pairs)
            weight = self.actions[self.state] * taken[self.pair]
        return np.divide(self.counted, weight, out=np.zeros(len(self.state)), where=self.counted)


def build_graph(state: np.ndarray, turns: Turns, timeout: str) -> Graph:
    """The graph over states [N].

    A rollout's last turn leads into a sink, never into the text it ended with: success by the
    environment's word, else failure. With `timeout: drop` the last turn of a rollout that ran out
    of turns is not counted, as nobody knows where it would have led.
    """
    n_states = int(state.max(initial=-1)) + 1
    successor = np.append(state[1:], UNKNOWN)[: len(state)]
    rollout = turns.rollout[turns.last]
    ended = np.where(turns.success[rollout], n_states, n_states + 1)
    if timeout == "drop":
        ended[turns.truncated[rollout] & ~turns.success[rollout]] = UNKNOWN
    successor[turns.last] = ended
    n_actions = int(turns.action.max(initial=-1)) + 1
    pairs, pair = np.unique(state * n_actions + turns.action, return_inverse=True)
    return Graph(n_states, len(pairs), state, pair, successor)
