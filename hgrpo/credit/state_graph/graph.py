"""The graph of a group: who went from which state, by which action, to which state.

N(s, a, x) counts occurrences, repeats inside a rollout included. Counts are not stored: every turn
is one occurrence, so sums over turns are sums weighted by counts.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hgrpo.credit.state_graph.buckets import sums
from hgrpo.credit.state_graph.turns import Turns, numbered

UNKNOWN = -1


@dataclass(frozen=True)
class Graph:
    """One transition per turn, between S states and two sinks.

    Attributes:
        state: int [N], 0..S-1.
        pair: int [N], number of the turn's (state, action), 0..n_pairs-1.
        successor: int [N], the state that followed; `success`, `failure`, or UNKNOWN for a turn
            that is not counted.
        clamped: int [C], states that are worth 0 whatever was won from there.
    """

    n_states: int
    n_pairs: int
    state: np.ndarray
    pair: np.ndarray
    successor: np.ndarray
    clamped: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

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
    def backed_up(self) -> np.ndarray:
        """Bool [N]: counted turns that have a part in the value of the state they leave."""
        return self.counted & ~np.isin(self.state, self.clamped)

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
        state_of = np.full(self.n_pairs, UNKNOWN)
        state_of[self.pair[self.counted]] = self.state[self.counted]
        return np.bincount(state_of[state_of != UNKNOWN], minlength=self.n_states)

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


def observed_ends(turns: Turns, timeout: str, failure: str) -> np.ndarray:
    """Last turns, int [E], that lead into the situation seen after them and not into a sink."""
    rollout = turns.rollout[turns.last]
    stopped, lost = turns.truncated[rollout], ~turns.success[rollout]
    seen = np.where(stopped, timeout in ("observed", "clamp"), failure == "observed")
    return turns.last[lost & seen]


def build_graph(
    state: np.ndarray, turns: Turns, timeout: str = "fail", failure: str = "absorb"
) -> Graph:
    """The graph over situations [N + E]: where the turns were, then what `observed_ends` led to.

    The last turn of a rollout leads into a sink, success by the environment's word, else failure.
    `observed` has it lead to the node of the situation that was seen after it: with `timeout`
    where the rollout ran out of turns, with `failure` where the environment ended it. A node that
    nobody left is a dead end. With `timeout: clamp` such a node is worth 0 even where others won
    from it; with `drop` the turn is not counted, as nobody knows where it would have led.
    """
    n_states = int(state.max(initial=-1)) + 1
    ends = observed_ends(turns, timeout, failure)
    state, final = np.split(state, [len(turns)])
    successor = np.append(state[1:], UNKNOWN)[: len(state)]
    rollout = turns.rollout[turns.last]
    stopped = turns.truncated[rollout] & ~turns.success[rollout]
    ended = np.where(turns.success[rollout], n_states, n_states + 1)
    if timeout == "drop":
        ended[stopped] = UNKNOWN
    successor[turns.last] = ended
    successor[ends] = final
    clamped = final[turns.truncated[turns.rollout[ends]]] if timeout == "clamp" else final[:0]
    n_actions = int(turns.action.max(initial=-1)) + 1
    pair = numbered((state * n_actions + turns.action).tolist())
    n_pairs = int(pair.max(initial=-1)) + 1
    return Graph(n_states, n_pairs, state, pair, successor, np.unique(clamped))
