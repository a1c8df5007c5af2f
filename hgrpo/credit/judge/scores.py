"""Reads scores from a judge's answer, strictly, and computes credit from scores."""

import json
import math
from collections.abc import Sequence

import numpy as np

from hgrpo.credit.judge.protocol import CallError, Scores
from hgrpo.credit.judge.settings import Normalisation, Variant

LOWEST, HIGHEST = 0.0, 10.0
_NO_SUM = 1e-9


def parse(text: str, turns: Sequence[int], variant: Variant) -> Scores:
    """The scores in an answer, in the order of the turns.

    Args:
        text: the answer, in the form of `prompts.answer_format`.
        turns: number of turns of each trajectory shown.

    Raises:
        CallError: "malformed" (not JSON of the requested form), "wrong_length" (not exactly one
            entry for every turn) or "out_of_range" (a score outside 0..10).
    """
    try:
        answer = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise CallError("malformed", "the answer is not JSON") from None
    if variant == "trajectory":
        (length,) = turns
        return [_turns(_only(answer, "scores"), length)]
    lists = _only(answer, "trajectories")
    in_order = _by_index(lists, "trajectory", "scores", len(turns))
    return [_turns(entries, length) for entries, length in zip(in_order, turns, strict=True)]


def check(scores: Scores, turns: Sequence[int]) -> None:
    """Raise CallError unless each turn has one finite score from 0 to 10."""
    if [len(row) for row in scores] != list(turns):
        raise CallError("wrong_length", "not one score for every turn")
    for row in scores:
        for score in row:
            _in_range(score)


def credit(
    scores: Sequence[Sequence[float] | None],
    turns: Sequence[int],
    returns: Sequence[float],
    normalisation: Normalisation,
) -> list[np.ndarray]:
    """Credit of every turn of a group of K trajectories.

    `centred`: (s - m) / 10, where m is the mean score over all judged turns of the group.
    Trajectories that miss the goal get credit too.
    `share`: s * R / sum(s) within the trajectory, and R / T if all its scores are zero. Credit sums
    to the return R, so all credit is 0 if R is 0.

    Args:
        scores: [K] rows of T_k; None for a trajectory without a judgement, which gets uniform
            credit: zeros if `centred`, R / T if `share`.
        turns, returns: [K], T_k and R_k.

    Returns:
        K float64 arrays of [T_k].
    """
    if normalisation == "centred":
        judged = [score for row in scores if row is not None for score in row]
        mean = math.fsum(judged) / len(judged) if judged else 0.0
        return [
            np.zeros(length) if row is None else (np.array(row, dtype=np.float64) - mean) / HIGHEST
            for row, length in zip(scores, turns, strict=True)
        ]
    return [
        _share(row, length, value)
        for row, length, value in zip(scores, turns, returns, strict=True)
    ]


def _share(row: Sequence[float] | None, length: int, value: float) -> np.ndarray:
    total = math.fsum(row or ())
    if row is None or total < _NO_SUM:
        return np.full(length, value / length) if length else np.zeros(0)
    return np.array(row, dtype=np.float64) / total * value


def _turns(entries: object, length: int) -> list[float]:
    return [_in_range(score) for score in _by_index(entries, "turn", "score", length)]


def _by_index(entries: object, index: str, value: str, length: int) -> list:
    """Values of JSON objects by index; CallError unless indices are 0 to length - 1, each once."""
    if not isinstance(entries, list):
        raise CallError("malformed", f"no list of {index}s")
    found = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.keys() != {index, value}:
            raise CallError("malformed", f"an entry is not an object of {index} and {value}")
        if type(entry[index]) is not int:
            raise CallError("malformed", f"a {index} is not an integer")
        found[entry[index]] = entry[value]
    if len(entries) != length or found.keys() != set(range(length)):
        raise CallError("wrong_length", f"not exactly one entry for each of {length} {index}s")
    return [found[i] for i in range(length)]


def _only(answer: object, key: str) -> object:
    if not isinstance(answer, dict) or answer.keys() != {key}:
        raise CallError("malformed", f"the answer is not an object of {key}")
    return answer[key]


def _in_range(score: object) -> float:
    # Compare exact types, because Python counts a bool as an int.
    if type(score) not in {int, float}:
        raise CallError("malformed", "a score is not a number")
    if not LOWEST <= score <= HIGHEST:
        raise CallError("out_of_range", "a score is not in 0..10")
    return float(score)


def _no_constant(name: str) -> None:
    raise ValueError(name)
