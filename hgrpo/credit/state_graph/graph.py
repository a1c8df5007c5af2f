"""Represents a group of rollouts as arrays of turns and as a graph of states.

The graph has one transition per turn. If action a led from state s to state x in several turns,
each of these turns is a separate transition. The graph does not store their number, N(s, a, x).
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from hgrpo.trajectories.trajectory import Trajectory

UNKNOWN = -1


@dataclass(frozen=True)
class Turns:
    """N turns of K rollouts.

    Attributes:
        lengths: int [K], number of turns of each rollout.
        success: bool [K], whether the rollout succeeded.
        truncated: bool [K], whether the turn cap or the context length ended the rollout.
        rollout: int [N], index of the turn's rollout.
        time: int [N], the turn's index in its rollout, from 0.
        last: int [M], index in 0..N-1 of the last turn of each rollout that has turns.
        action: int [N], index of the turn's command, equal for commands with equal `action_key`.
        inadmissible: bool [N], whether the turn's action was inadmissible.
    """

    lengths: np.ndarray
    success: np.ndarray
    truncated: np.ndarray
    rollout: np.ndarray
    time: np.ndarray
    last: np.ndarray
    action: np.ndarray
    inadmissible: np.ndarray

    def __len__(self) -> int:
        return len(self.rollout)

    @cached_property
    def remaining(self) -> np.ndarray:
        """Number of later turns in the same rollout, int [N]."""
        return self.lengths[self.rollout] - 1 - self.time


def action_key(action: str) -> str:
    """Return the command, lowercased and stripped; "<invalid>" if the reply has no command."""
    return action.strip().lower() or "<invalid>"


def numbered(labels: Iterable[Hashable]) -> np.ndarray:
    """Return an integer per label, [N]. Distinct labels get 0, 1, ... in order of appearance."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.int64)


def flatten(trajectories: Sequence[Trajectory]) -> Turns:
    """Return all turns of the trajectories, in order."""
    lengths = np.array([len(trajectory.turns) for trajectory in trajectories], dtype=np.int64)
    ends = np.cumsum(lengths)
    rollout = np.repeat(np.arange(len(lengths)), lengths)
    turns = [turn for trajectory in trajectories for turn in trajectory.turns]
    key_of = {action: action_key(action) for action in {turn.action for turn in turns}}
    return Turns(
        lengths=lengths,
        success=np.array([trajectory.success for trajectory in trajectories], dtype=bool),
        truncated=np.array([trajectory.truncated for trajectory in trajectories], dtype=bool),
        rollout=rollout,
        time=np.arange(len(rollout)) - np.repeat(ends - lengths, lengths),
        last=ends[lengths > 0] - 1,
        action=numbered(key_of[turn.action] for turn in turns),
        inadmissible=np.array([not turn.admissible for turn in turns], dtype=bool),
    )


@dataclass(frozen=True)
class Graph:
    """Graph of S states and two sinks (success and failure), with one transition per turn.

    Attributes:
        n_states: S.
        n_pairs: number of distinct (state, action) pairs.
        state: int [N], the state of each turn, from 0 to S - 1.
        pair: int [N], the turn's (state, action) pair, from 0 to n_pairs - 1.
        successor: int [N], state after the turn. S is the success sink, and S + 1 is the failure
            sink. UNKNOWN means that the turn is not counted, i.e. is excluded from statistics.
        clamped: int [C], states whose Bellman value is fixed to 0, even if a successful rollout has
            visited them.
    """

    n_states: int
    n_pairs: int
    state: np.ndarray
    pair: np.ndarray
    successor: np.ndarray
    clamped: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def success(self) -> int:
        return self.n_states

    @cached_property
    def counted(self) -> np.ndarray:
        """Whether each turn has a known successor and is thus included in statistics, bool [N]."""
        return self.successor != UNKNOWN

    @cached_property
    def backed_up(self) -> np.ndarray:
        """Whether backups use each turn: it is counted and its state is not clamped, bool [N]."""
        return self.counted & ~np.isin(self.state, self.clamped)

    @cached_property
    def transition(self) -> np.ndarray:
        """Index of each turn's (state, action, successor) triple, int [N]."""
        return self.pair * (self.n_states + 3) + self.successor + 1

    @cached_property
    def visits(self) -> np.ndarray:
        """Number of counted turns in each state, N(s), float [S]."""
        return sums(self.counted, self.state, self.n_states)

    @cached_property
    def actions(self) -> np.ndarray:
        """Number of distinct actions in the counted turns of each state, int [S]."""
        state_of = np.full(self.n_pairs, UNKNOWN)
        state_of[self.pair[self.counted]] = self.state[self.counted]
        return np.bincount(state_of[state_of != UNKNOWN], minlength=self.n_states)

    def shares(self, mu: str) -> np.ndarray:
        """Return the weight mu(a|s) P(x|s,a) / N(s,a,x) of each turn, [N].

        If mu is `count`, mu(a|s) is the share of the state's counted turns with action a. If mu is
        `uniform`, mu(a|s) is the same for all actions in the state's counted turns. Turns that are
        not counted have weight 0. The weights of all turns in a state sum to 1.
        """
        if mu == "count":
            weight = self.visits[self.state]
        else:
            taken = sums(self.counted, self.pair, self.n_pairs)
            weight = self.actions[self.state] * taken[self.pair]
        return np.divide(self.counted, weight, out=np.zeros(len(self.state)), where=self.counted)


def sums(values: np.ndarray, bucket: np.ndarray, size: int) -> np.ndarray:
    """Return the sum of `values` [N] per bucket, [size]; `bucket` is int [N], below `size`."""
    return np.bincount(bucket, weights=values, minlength=size)


def means(
    values: np.ndarray, bucket: np.ndarray, size: int, counted: np.ndarray, empty: float = np.nan
) -> np.ndarray:
    """Return the means of `values` over the counted turns of each bucket; `empty` without any."""
    total = sums(np.where(counted, values, 0.0), bucket, size)
    number = sums(counted, bucket, size)
    return np.divide(total, number, out=np.full(size, empty), where=number > 0)


def first_visits(graph: Graph, turns: Turns) -> Graph:
    """Return a graph that counts each (state, action) pair at most once per rollout."""
    rollout_pair = turns.rollout * graph.n_pairs + graph.pair
    first = np.isin(np.arange(len(turns)), np.unique(rollout_pair, return_index=True)[1])
    return replace(graph, successor=np.where(first, graph.successor, UNKNOWN))


def observed_ends(turns: Turns, timeout: str, failure: str) -> np.ndarray:
    """Return indices of the last turns of rollouts that end in an observed state, int [E]."""
    rollout = turns.rollout[turns.last]
    stopped, lost = turns.truncated[rollout], ~turns.success[rollout]
    seen = np.where(stopped, timeout in ("observed", "clamp"), failure == "observed")
    return turns.last[lost & seen]


def build_graph(
    state: np.ndarray, turns: Turns, timeout: str = "fail", failure: str = "absorb"
) -> Graph:
    """Build the graph of N turns.

    The successor of a rollout's last turn is the success sink if the rollout was successful, and
    otherwise depends on `timeout` (truncated rollouts) or `failure` (all other failed rollouts).
    The values of `timeout` and `failure` mean:
    - `fail`, `absorb`: the failure sink.
    - `observed`: the state observed after the turn, which is a dead end if no turn starts in it.
    - `clamp`: like `observed`, but the state's Bellman value is 0 (see `Graph.clamped`).
    - `drop`: unknown, so that the turn is not counted.

    Args:
        state: int [N + E], states of the turns, followed by final states after the turns in
            `observed_ends`.
        timeout, failure: as in `Settings`.
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
