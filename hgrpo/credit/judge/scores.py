"""Parses the scores in a judge's answer, and converts scores to credit."""

import contextlib
import json
import math
import re
from collections.abc import Iterator, Sequence

import numpy as np

from hgrpo.credit.judge.protocol import CallError, Scores
from hgrpo.credit.judge.settings import Normalisation

LOWEST, HIGHEST = 0.0, 10.0
_NO_SUM = 1e-9
_OPENING = re.compile(r"[{\[]")
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


def parse(text: str, turns: Sequence[int]) -> Scores:
    """Parse the scores in an answer, and return them in the order of the turns.

    If a server ignores `response_format`, the JSON may be surrounded by thoughts, other text or a
    code fence, and numbers may be quoted. Such an answer is accepted if it is unambiguous.

    Args:
        text: the answer, in the format of `protocol.answer_format`.
        turns: number of turns of each trajectory in the prompt.

    Raises:
        CallError: "malformed" (no JSON in the requested format, or JSON values that contradict each
            other), "wrong_length" (not exactly one entry per turn) or "out_of_range" (a score
            outside 0..10).
    """
    answer = text.rpartition("</think>")[2].partition("<think>")[0]
    try:
        values = list(_values(_TRAILING_COMMA.sub(r"\1", answer)))
        # Some answers contain one object per turn, but no list around these objects.
        results = [_read(value, turns) for value in [*values, values]]
    except RecursionError:
        raise CallError("malformed", "the answer is nested too deeply") from None
    readings = [result for result in results if not isinstance(result, CallError)]
    if not readings:
        raise results[0]
    if any(reading != readings[0] for reading in readings):
        raise CallError("malformed", "the answer contains several different lists of scores")
    return [[_in_range(score) for score in row] for row in readings[0]]


def check(scores: Scores, turns: Sequence[int]) -> None:
    """Raise CallError unless every turn has one finite score from 0 to 10."""
    if [len(row) for row in scores] != list(turns):
        raise CallError("wrong_length", "expected exactly one score for every turn")
    for row in scores:
        for score in row:
            _in_range(score)


def credit(
    scores: Sequence[Sequence[float] | None],
    turns: Sequence[int],
    returns: Sequence[float],
    normalisation: Normalisation,
) -> list[np.ndarray]:
    """Convert scores to credit for every turn of a group of K trajectories.

    - `centred`: credit is (s - m) / 10, where m is the mean score over all judged turns of the
      group. Turns of failed episodes may also get positive credit.
    - `share`: credit is s * R / sum(s), a share of the trajectory's return R. If all scores are 0,
      it is R / T.

    Args:
        scores: K rows [T_k], or None for a trajectory without a judgement. All turns of such a
            trajectory get credit 0 (`centred`) or R / T (`share`).
        turns, returns: T_k and R_k of each trajectory, [K].

    Returns:
        K float64 arrays [T_k].
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


def _values(text: str) -> Iterator[object]:
    at = 0
    while opening := _OPENING.search(text, at):
        try:
            value, at = _DECODER.raw_decode(text, opening.start())
            yield value
        except ValueError:
            at = opening.end()


def _read(value: object, turns: Sequence[int]) -> list[list] | CallError:
    """Return the scores in a JSON value, or a CallError if it does not have one entry per turn."""
    entries = list(_entries(value))
    if any(type(number) is not int for place, _ in entries for number in place):
        return CallError("malformed", "an index is not an integer")
    rows = [[(k, i) for i in range(length)] for k, length in enumerate(turns)]
    # Some answers count turns from 1, which can only be detected from the whole answer.
    for shift in (0, 1):
        scores = {(k, i - shift): score for (k, i), score in entries}
        complete = sorted(scores) == [place for row in rows for place in row]
        if complete and len(entries) == len(scores):
            return [[scores[place] for place in row] for row in rows]
    lists = [value.get(key) for key in ("scores", "trajectories")] if type(value) is dict else []
    if any(isinstance(each, list) for each in lists):
        counts = f"expected one entry for each of {sum(turns)} turns, got {len(entries)} entries"
        return CallError("wrong_length", counts)
    return CallError("malformed", "the answer does not contain JSON in the requested format")


def _entries(value: object, trajectory: object = 0) -> Iterator[tuple[tuple, object]]:
    """Yield ((trajectory, turn), score) for all entries in a JSON value, at any depth."""
    if isinstance(value, dict):
        trajectory = _number(value.get("trajectory", trajectory))
        if "turn" in value:
            yield (trajectory, _number(value["turn"])), _number(value.get("score"))
            return
        scores = value.get("scores")
        if isinstance(scores, list) and not any(isinstance(each, dict) for each in scores):
            value = [{"turn": turn, "score": score} for turn, score in enumerate(scores)]
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, dict | list):
            yield from _entries(each, trajectory)


def _number(value: object) -> object:
    """Convert text such as "7" or "7/10" to a number; return other values unchanged."""
    with contextlib.suppress(ValueError, AttributeError):
        return _DECODER.decode(value.replace(" ", "").removesuffix("/10"))
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    lower = {key.strip().lower(): value for key, value in pairs}
    if len(lower) != len(pairs):
        raise ValueError("duplicate key")
    return lower


def _in_range(score: object) -> float:
    # Compare exact types, because a bool is an int in Python.
    if type(score) not in {int, float}:
        raise CallError("malformed", "a score is not a number")
    if not LOWEST <= score <= HIGHEST:
        raise CallError("out_of_range", "a score is outside 0..10")
    return float(score)


# Decode NaN and Infinity as None. `_in_range` rejects None, because it is not a number.
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=lambda name: None)
