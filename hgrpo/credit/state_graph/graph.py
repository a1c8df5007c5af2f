"""The graph of a group: its states, and one transition between them for each turn.

Counts N(s, a, x) include repeats inside a rollout. They are not stored: every turn is one
occurrence, so a sum over turns is a sum weighted by counts.
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
        n_states: S.
        n_pairs: number of different (state, action) pairs.
        state: int [N], the state of each turn, 0..S-1.
        pair: int [N], the turn's (state, action) pair, 0..n_pairs-1.
        successor: int [N], the next state, `success`, `failure`, or UNKNOWN for a turn that is not
            counted.
        clamped: int [C], states whose value is 0, whatever was won from there.

    Raises:
        ValueError: the arrays of turns differ in length.
    """

    n_states: int
    n_pairs: int
    state: np.ndarray
    pair: np.ndarray
    successor: np.ndarray
    clamped: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if not len(self.state) == len(self.pair) == len(self.successor):
            raise ValueError("state, pair and successor must have one entry for each turn")

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
        """Bool [N]: counted turns that enter the value of the state they leave."""
        return self.counted & ~np.isin(self.state, self.clamped)

    @cached_property
    def transition(self) -> np.ndarray:
        """Int [N], equal for turns with equal state, action and successor."""
        return self.pair * (self.n_states + 3) + self.successor + 1

    @cached_property
    def visits(self) -> np.ndarray:
        """Counted visits N(s) of each state, float [S]."""
        return sums(self.counted, self.state, self.n_states)

    @cached_property
    def actions(self) -> np.ndarray:
        """Number of different counted actions in each state, int [S]."""
        state_of = np.full(self.n_pairs, UNKNOWN)
        state_of[self.pair[self.counted]] = self.state[self.counted]
        return np.bincount(state_of[state_of != UNKNOWN], minlength=self.n_states)

    def shares(self, mu: str) -> np.ndarray:
        """Weights mu(a|s) P(x|s,a) / N(s,a,x) of turns, [N]; those of a state sum to 1.

        With mu `count` an action weighs as often as it was taken, with `uniform` all actions weigh
        the same. A turn that is not counted weighs 0.
        """
        if mu == "count":
            weight = self.visits[self.state]
        else:
            taken = sums(self.counted, self.pair, self.n_pairs)
            weight = self.actions[self.state] * taken[self.pair]
        return np.divide(self.counted, weight, out=np.zeros(len(self.state)), where=self.counted)


def observed_ends(turns: Turns, timeout: str, failure: str) -> np.ndarray:
    """Last turns, int [E], that lead into the state seen after them instead of a sink."""
    rollout = turns.rollout[turns.last]
    stopped, lost = turns.truncated[rollout], ~turns.success[rollout]
    seen = np.where(stopped, timeout in ("observed", "clamp"), failure == "observed")
    return turns.last[lost & seen]


def build_graph(
    state: np.ndarray, turns: Turns, timeout: str = "fail", failure: str = "absorb"
) -> Graph:
    """Build the graph.

    The last turn of a rollout leads into a sink: success if the environment said so, else failure.
    With `observed` it leads into the state seen after it; `timeout` decides this for a rollout
    that ran out of turns, `failure` for one that the environment ended. A state that no turn left
    is a dead end. With `timeout: clamp` the state seen after a timeout is worth 0, even if another
    rollout won from it. With `timeout: drop` the turn is not counted, because where it would have
    led is unknown.

    Args:
        state: int [N + E], the states of the turns, then the states that the turns of
            `observed_ends` led into.
        turns: the N turns.
        timeout: `fail`, `observed`, `drop` or `clamp`.
        failure: `absorb` or `observed`.
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
