"""Which turns are in the same state."""

from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher

import numpy as np

from hgrpo.agent.trajectory import Trajectory, Turn
from hgrpo.credit.state_graph.settings import Key
from hgrpo.credit.state_graph.turns import Turns, numbered


def _struct(turn: Turn) -> Hashable:
    if not turn.state:
        raise RuntimeError("state graph: the turns carry no fingerprints of their situations")
    return turn.state, turn.commands


LABELS: dict[str, Callable[[Turn], Hashable]] = {
    "obs": lambda turn: turn.observation,
    "obs_cmds": lambda turn: (turn.observation, turn.commands),
    "struct": _struct,
    "page": lambda turn: " ".join(turn.observation.split()),
    "sim": lambda turn: turn.observation,
}


def situations(trajectories: Sequence[Trajectory], key: Key) -> np.ndarray:
    """Integers [N], equal where the turns' situations are; what went before does not matter.

    With `noop: carry` a turn after an inadmissible action is where the turn before was, whatever
    the text says: "Nothing happens." comes from every room.
    """
    label_of = LABELS[key.state]
    labels: list[Hashable] = []
    for trajectory in trajectories:
        stays = False
        for turn in trajectory.turns:
            labels.append(labels[-1] if stays else label_of(turn))
            stays = key.noop == "carry" and not turn.admissible
    if key.state == "sim":
        cluster = clusters(set(labels), key.theta)
        labels = [cluster[label] for label in labels]
    return numbered(labels)


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


def with_history(situation: np.ndarray, turns: Turns, key: Key) -> np.ndarray:
    """Integers [N], equal where the situations and the `history` ones before are.

    A turn with fewer turns before it agrees only with turns that have exactly as many.
    """
    if key.history == 0:
        return situation
    state = situation
    step = situation
    if key.history_actions:
        # What a turn adds to the history of the next one: where it was and what it did.
        step = numbered(zip(situation.tolist(), turns.action.tolist(), strict=True))
    size = int(step.max(initial=0)) + 2
    past = np.full(len(situation), -1)
    for _ in range(key.history):
        longer = np.full(len(situation), -1)
        inside = np.flatnonzero(turns.time > 0)
        longer[inside] = ((past + 1) * size + step)[inside - 1]
        longer = np.unique(longer, return_inverse=True)[1] - 1
        if np.array_equal(longer, past):
            break
        past = longer
    return np.unique((past + 1) * (int(state.max(initial=0)) + 1) + state, return_inverse=True)[1]
