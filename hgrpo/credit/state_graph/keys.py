"""Which turns are in the same state."""

from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher

import numpy as np

from hgrpo.credit.state_graph.settings import Key
from hgrpo.credit.state_graph.turns import Turns, numbered
from hgrpo.trajectories.trajectory import FinalState, Trajectory, Turn


def _struct(turn: Turn | FinalState) -> Hashable:
    if not turn.state:
        raise RuntimeError("state graph: the turns carry no fingerprints of their situations")
    return turn.state, turn.commands


LABELS: dict[str, Callable[[Turn | FinalState], Hashable]] = {
    "obs": lambda turn: turn.observation,
    "obs_cmds": lambda turn: (turn.observation, turn.commands),
    "struct": _struct,
    "page": lambda turn: " ".join(turn.observation.split()),
    "sim": lambda turn: turn.observation,
}


def situations(
    trajectories: Sequence[Trajectory], key: Key, ended: Sequence[int] = ()
) -> np.ndarray:
    """Integers [N + E], equal where situations are; what went before does not matter.

    The turns' situations come first, then the final ones of the trajectories `ended` [E], in
    ascending order. With `noop: carry` the agent is after an inadmissible action where it was
    before, whatever the text says: "Nothing happens." comes from every room.
    """
    label_of = LABELS[key.state]
    labels: list[Hashable] = []
    final: list[Hashable] = []
    read = set(ended)
    for index, trajectory in enumerate(trajectories):
        stays = False
        for turn in trajectory.turns:
            labels.append(labels[-1] if stays else label_of(turn))
            stays = key.noop == "carry" and not turn.admissible
        if index in read:
            final.append(labels[-1] if stays else label_of(_final(trajectory)))
    labels += final
    if key.state == "sim":
        cluster = clusters(set(labels), key.theta)
        labels = [cluster[label] for label in labels]
    return numbered(labels)


def _final(trajectory: Trajectory) -> FinalState:
    if trajectory.final is None:
        raise RuntimeError("state graph: the trajectories do not hold the situation they ended in")
    return trajectory.final


def clusters(texts: set[str], theta: float) -> dict[str, str]:
    """Each text's cluster, named by its first member.

    A text joins the first cluster whose first member it resembles by `theta` or more
    (difflib's ratio). Texts come in sorted order, so the order of rollouts does not matter.
    """
    result: dict[str, str] = {}
    heads: list[str] = []
    for text in sorted(texts):
        # SequenceMatcher caches what it knows of its second text.
        matcher = SequenceMatcher(None, "", text, autojunk=False)
        for head in heads:
            matcher.set_seq1(head)
            if (
                matcher.real_quick_ratio() >= theta
                and matcher.quick_ratio() >= theta
                and matcher.ratio() >= theta
            ):
                result[text] = head
                break
        else:
            heads.append(text)
            result[text] = text
    return result


def with_history(
    situation: np.ndarray, turns: Turns, key: Key, ends: np.ndarray | None = None
) -> np.ndarray:
    """Integers [N + E], equal where the situations and the `history` ones before are.

    A situation with fewer turns before it agrees only with those that have exactly as many.

    Args:
        situation: of the turns [N], then of what followed the last turns `ends` [E].
    """
    if key.history == 0:
        return situation
    n = len(turns)
    # What a turn adds to the history of the next one: where it was, and what it did.
    step = situation[:n]
    if key.history_actions:
        step = numbered(zip(step.tolist(), turns.action.tolist(), strict=True))
    size = int(step.max(initial=0)) + 2
    inside = np.append(np.flatnonzero(turns.time > 0), np.arange(n, len(situation)))
    before = np.append(inside[inside < n] - 1, np.zeros(0, np.int64) if ends is None else ends)
    past = np.full(len(situation), -1)
    for _ in range(key.history):
        longer = np.full(len(situation), -1)
        longer[inside] = ((past[:n] + 1) * size + step)[before]
        longer = numbered([-1, *longer.tolist()])[1:] - 1
        if np.array_equal(longer, past):
            break
        past = longer
    width = int(situation.max(initial=0)) + 1
    return numbered(((past + 1) * width + situation).tolist())
