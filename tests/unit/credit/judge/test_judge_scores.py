"""Scores from a judge's answers, and credit from scores."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgrpo.credit.judge.protocol import CallError
from hgrpo.credit.judge.scores import check, credit, parse

SCORE = st.floats(0, 10) | st.integers(0, 10)
ROWS = st.lists(st.lists(SCORE, min_size=1, max_size=6), min_size=1, max_size=4)


def listed(row):
    return [{"turn": i, "score": score} for i, score in enumerate(row)]


@given(row=st.lists(SCORE, min_size=1, max_size=8), data=st.data())
def test_a_trajectory_s_answer_is_read_in_any_order(row, data):
    entries = data.draw(st.permutations(listed(row)))
    assert parse(json.dumps({"scores": entries}), [len(row)]) == [row]


@given(rows=ROWS, data=st.data())
def test_a_group_s_answer_is_read_in_any_order(rows, data):
    entries = [{"trajectory": k, "scores": listed(row)} for k, row in enumerate(rows)]
    answer = json.dumps({"trajectories": data.draw(st.permutations(entries))})
    assert parse(answer, [len(row) for row in rows]) == rows


TWICE = json.dumps({"scores": [{"turn": turn, "score": 1} for turn in (0, 1, 1)]})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("no", "malformed"),
        ("[" * 100_000, "malformed"),
        ('{"points": []}', "malformed"),
        ('{"scores": [{"turn": 0, "score": 1}, {"turn": 1}]}', "malformed"),
        ('{"scores": [{"turn": 0, "score": 1}, {"turn": 1, "score": true}]}', "malformed"),
        ('{"scores": [{"turn": 0, "score": 1}, {"turn": true, "score": 1}]}', "malformed"),
        ('{"scores": [{"turn": 0, "score": 1}, {"turn": 1, "score": NaN}]}', "malformed"),
        ('{"scores": [{"turn": 0, "score": 1}, {"turn": 1, "score": "7/100"}]}', "malformed"),
        ('{"scores": [{"turn": 0, "score": 1}, {"turn": 1, "score": 2, "Score": 3}]}', "malformed"),
        ('{"scores": [1, 2]} or rather {"scores": [2, 1]}', "malformed"),
        ('<think>{"scores": [1, 2]}', "malformed"),
        ('{"scores": [1, 2, 3]}', "wrong_length"),
        ('{"scores": [{"turn": 2, "score": 1}, {"turn": 3, "score": 2}]}', "wrong_length"),
        ('{"scores": [{"turn": 1, "score": 1}, {"turn": 1, "score": 2}]}', "wrong_length"),
        (TWICE, "wrong_length"),
        ('{"scores": [{"turn": 0, "score": 1}, {"turn": 1, "score": 10.01}]}', "out_of_range"),
    ],
)
def test_anything_but_one_score_for_each_turn_is_an_error(answer, reason):
    with pytest.raises(CallError) as caught:
        parse(answer, [2])
    assert caught.value.reason == reason


LIST = '[{"turn": 0, "score": 1}, {"turn": 1, "score": 2.5}]'
FORM = f'{{"scores": {LIST}}}'


@pytest.mark.parametrize(
    "answer",
    [
        f"```json\n{FORM}\n```",
        f"Here are the scores [0 to 10]:\n\n{FORM}\n\nTurn 1 {{the key}} decides.",
        f'<think>Maybe {{"scores": [3, 3]}}?</think>\n{FORM}',
        f'In the form {{"scores": [{{"turn": 0, "score": 5}}]}}: {FORM}',
        f'{{"reasoning": "a [b] {{c}}", "answer": {FORM}}}',
        '{"scores": [{"turn": "0", "score": "1"}, {"turn": "1", "score": " 2.5 "}]}',
        '{"scores": [{"turn": 0, "score": "1/10"}, {"turn": 1, "score": "2.5 / 10"}]}',
        '{"Scores": [{"Turn": 0, "SCORE": 1, "why": "x"}, {"Turn": 1, "SCORE": 2.5}]}',
        '{"scores": [{"turn": 0, "score": 1,}, {"turn": 1, "score": 2.5},],}',
        '{"turn": 0, "score": 1}\n{"turn": 1, "score": 2.5}',
        '{"trajectories": [{"trajectory": 0, "scores": [1, 2.5]}]}',
        '{"scores": [{"turn": 1, "score": 1}, {"turn": 2, "score": 2.5}]}',
    ],
)
def test_an_answer_with_one_reading_is_read(answer):
    assert parse(answer, [2]) == [[1.0, 2.5]]


@pytest.mark.parametrize(
    "scores", [[[1.0]], [[1.0, 2.0, 3.0]], [], [[1.0, float("nan")]], [[1.0, 11.0]], [[1.0, "2"]]]
)
def test_check_refuses_what_is_no_judgement(scores):
    with pytest.raises(CallError):
        check(scores, [2])


def test_centred_credit_teaches_from_failures_too():
    rows = credit([[0.0, 10.0], [5.0]], [2, 1], [0.0, 0.0], "centred")
    assert [row.tolist() for row in rows] == [[-0.5, 0.5], [0.0]]


def test_share_is_the_score_s_part_of_the_return():
    rows = credit([[1.0, 3.0], [2.0, 2.0]], [2, 2], [0.8, 0.0], "share")
    assert np.allclose(rows[0], [0.2, 0.6])
    assert rows[1].tolist() == [0.0, 0.0]


def test_without_a_judgement_credit_is_uniform():
    centred = credit([None, [2.0, 4.0]], [3, 2], [1.0, 1.0], "centred")
    assert [row.tolist() for row in centred] == [[0.0] * 3, [-0.1, 0.1]]
    # Nor do scores of 0 share a return.
    share = credit([None, [0.0, 0.0], None], [4, 2, 0], [1.0, 1.0, 0.0], "share")
    assert [row.tolist() for row in share] == [[0.25] * 4, [0.5, 0.5], []]


@given(rows=ROWS, data=st.data())
def test_credit_keeps_shapes_and_sums(rows, data):
    turns = [len(row) for row in rows]
    returns = data.draw(st.lists(st.floats(-2, 2), min_size=len(rows), max_size=len(rows)))
    centred = credit(rows, turns, returns, "centred")
    share = credit(rows, turns, returns, "share")
    for result in (centred, share):
        assert [row.shape for row in result] == [(n,) for n in turns]
        assert all(row.dtype == np.float64 and np.isfinite(row).all() for row in result)
    assert abs(np.concatenate(centred).sum()) < 1e-9
    assert np.allclose([row.sum() for row in share], returns)
    # Credit from raw scores alone: the return changes nothing.
    other = credit(rows, turns, [0.0] * len(rows), "centred")
    assert all(np.array_equal(a, b) for a, b in zip(centred, other, strict=True))
