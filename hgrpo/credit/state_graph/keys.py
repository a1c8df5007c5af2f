"""Assigns states to turns. `Key` defines whether two turns start in the same state."""

from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from hgrpo.credit.state_graph.graph import Turns, numbered
from hgrpo.credit.state_graph.settings import Key
from hgrpo.errors import UserError
from hgrpo.trajectories.trajectory import FinalState, Trajectory, Turn

# Upper bound of the rounding error of a cosine.
_ROUNDING = 1e-6


def _struct(turn: Turn | FinalState) -> Hashable:
    if not turn.state:
        raise UserError("state graph: this round has no state fingerprints; run the round again")
    return turn.state, turn.commands


LABELS: dict[str, Callable[[Turn | FinalState], Hashable]] = {
    "obs": lambda turn: turn.observation,
    "obs_cmds": lambda turn: (turn.observation, turn.commands),
    "struct": _struct,
    "page": lambda turn: " ".join(turn.observation.split()),
    "sim": lambda turn: turn.observation,
}


def states(
    trajectories: Sequence[Trajectory],
    key: Key,
    ended: Sequence[int] = (),
    hidden: np.ndarray | None = None,
) -> np.ndarray:
    """Return the state of each turn as an integer, ignoring `key.history`.

    With `noop: carry`, an inadmissible action does not change the state. The observation after it
    is ignored, because its text may be the same in every state ("Nothing happens.").

    Args:
        trajectories: the rollouts of one task, with N turns in total.
        ended: int [E], indices of trajectories whose final states are also returned.
        hidden: float [N, D], the policy's hidden state before each turn's reply. It is used only
            with `state: hidden`, which does not support `ended`.

    Returns:
        Integers [N + E], which are equal for equal states. The states of the turns are followed by
        the final states of the trajectories in `ended`, in ascending order of trajectory index.

    Raises:
        UserError: the turns have no fingerprints, because the round is from an older version.
        RuntimeError: a trajectory has no final state.
    """
    turn_labels = iter(_labels(trajectories, key, hidden))
    labels: list[Hashable] = []
    final: list[Hashable] = []
    for index, trajectory in enumerate(trajectories):
        stays = False
        for turn, label in zip(trajectory.turns, turn_labels, strict=False):
            labels.append(labels[-1] if stays else label)
            stays = key.noop == "carry" and not turn.admissible
        if index in ended:
            final.append(labels[-1] if stays else LABELS[key.state](_final(trajectory)))
    labels += final
    if key.state == "sim":
        cluster = clusters(set(labels), key.theta)
        labels = [cluster[label] for label in labels]
    return numbered(labels)


def _labels(
    trajectories: Sequence[Trajectory], key: Key, hidden: np.ndarray | None
) -> list[Hashable]:
    if key.state == "hidden":
        return cosine_clusters(hidden, key.theta).tolist()
    label_of = LABELS[key.state]
    return [label_of(turn) for trajectory in trajectories for turn in trajectory.turns]


def _final(trajectory: Trajectory) -> FinalState:
    if trajectory.final is None:
        raise RuntimeError("state graph: a trajectory has no final state")
    return trajectory.final


def clusters(texts: set[str], theta: float) -> dict[str, str]:
    """Map each text to the first member of its cluster.

    A text is added to the first cluster whose first member is similar to it (difflib ratio of at
    least `theta`). Texts are sorted first, so that the order of rollouts has no effect.
    """
    result: dict[str, str] = {}
    heads: list[str] = []
    for text in sorted(texts):
        # Replace only the first text, because SequenceMatcher caches its analysis of the second.
        matcher = SequenceMatcher(None, "", text, autojunk=False)
        for head in heads:
            matcher.set_seq1(head)
            bounds = matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio
            if all(ratio() >= theta for ratio in bounds):
                result[text] = head
                break
        else:
            heads.append(text)
            result[text] = text
    return result


def with_history(
    state: np.ndarray, turns: Turns, key: Key, ends: np.ndarray | None = None
) -> np.ndarray:
    """Return integers [N + E], which are equal if the last `key.history` + 1 states are equal.

    A turn with fewer than `key.history` earlier turns can equal only turns with the same number of
    earlier turns.

    Args:
        state: int [N + E], states of the turns, followed by final states after the turns in `ends`.
        ends: int [E], indices of last turns of rollouts, or None.
    """
    if key.history == 0:
        return state
    n = len(turns)
    # Each turn adds its state, and optionally its action, to the history of the next turn.
    step = state[:n]
    if key.history_actions:
        step = numbered(zip(step.tolist(), turns.action.tolist(), strict=True))
    size = int(step.max(initial=0)) + 2
    inside = np.append(np.flatnonzero(turns.time > 0), np.arange(n, len(state)))
    before = np.append(inside[inside < n] - 1, np.zeros(0, np.int64) if ends is None else ends)
    past = np.full(len(state), -1)
    for _ in range(key.history):
        longer = np.full(len(state), -1)
        longer[inside] = ((past[:n] + 1) * size + step)[before]
        longer = numbered([-1, *longer.tolist()])[1:] - 1
        if np.array_equal(longer, past):
            break
        past = longer
    width = int(state.max(initial=0)) + 1
    return numbered(((past + 1) * width + state).tolist())


def cosine_clusters(states: np.ndarray, theta: float) -> np.ndarray:
    """Cluster hidden states [N, D] as in BiPACE, and return the cluster of each row, int [N].

    "Bisimulation-Guided Policy Optimization with Action Counterfactual Estimation for LLM Agents",
    https://arxiv.org/abs/2606.25556.

    Any two members of a cluster have a cosine similarity of at least `theta`. Agglomerative
    clustering with complete linkage makes the result independent of the order of the rows.
    """
    rows, index = np.unique(np.asarray(states, dtype=np.float64), axis=0, return_inverse=True)
    if len(rows) < 2:
        return np.zeros(len(states), dtype=np.int64)
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
    distance = np.maximum(1.0 - unit @ unit.T, 0.0)
    tree = linkage(squareform(distance, checks=False), method="complete")
    return fcluster(tree, 1.0 - theta + _ROUNDING, criterion="distance")[index.reshape(-1)]
