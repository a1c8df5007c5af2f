"""Prompts: complete, and safe from text that imitates their format."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_cases import GOAL, ROOM, WON, prompt_of, trajectory

from hgrpo.credit.judge.protocol import PROMPT_VERSION, answer_format
from hgrpo.credit.judge.rubric import read
from hgrpo.games.kinds import load

# Every line break of Unicode, the characters of JSON, and letters of one to four bytes.
TEXT = st.text('\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"{}[]:,\\aé猫\U0001f600', max_size=60)


def test_goal_turns_and_outcome_are_shown():
    text = prompt_of([trajectory(WON, success=True)]).user
    assert load("alfworld").judge_text().primer in text
    assert json.dumps(GOAL) in text
    for action, effect, _ in WON[:-1]:
        assert json.dumps(action) in text
        assert json.dumps(effect) in text
    assert '"outcome": {"success": true, "env_return": 1.0, "truncated": false}' in text
    assert "trajectory 0: turns 0 to 8" in text


@given(goal=TEXT, turns=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4), won=st.booleans())
def test_no_text_can_pass_for_another_turn(goal, turns, won):
    played = trajectory([(action, "") for _, action in turns], success=won, goal=goal)
    for turn, (observation, _) in zip(played.turns, turns, strict=True):
        turn.observation = observation
    environment, goal_read, records = read(prompt_of([played]).user)
    assert (environment, goal_read) == ("alfworld", goal)
    (record,) = records
    assert record.turns == turns
    assert record.completed is won


def test_text_that_no_request_can_carry_is_mended():
    played = trajectory([("open \udc80 door", "")], opening="a" * 10_000 + "é 猫")
    text = prompt_of([played]).user
    text.encode("utf-8")
    assert "open ? door" in text
    assert "a" * 10_000 + "é 猫" in text


@pytest.mark.parametrize("variant", ["trajectory", "group"])
def test_the_answer_s_schema_is_strict_throughout(variant):
    form = answer_format(variant)
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True

    def objects(node):
        if isinstance(node, dict):
            if node.get("type") == "object":
                yield node
            for value in node.values():
                yield from objects(value)

    nodes = list(objects(form["json_schema"]["schema"]))
    assert len(nodes) == (2 if variant == "trajectory" else 3)
    for node in nodes:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])


def test_another_prompt_is_another_version():
    prompts = [
        prompt_of([trajectory(WON, success=True, opening=ROOM)] * n, variant, environment)
        for environment in ("alfworld", "webshop")
        for n, variant in ((1, "trajectory"), (2, "group"))
    ]
    text = json.dumps([[built.messages, built.response_format] for built in prompts])
    primers = [load(name).judge_text().primer_version for name in ("alfworld", "webshop")]
    known = {("3", "", ""): "1fedf29b80011bc5"}
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert known.get((PROMPT_VERSION, *primers)) == digest, (
        "raise PROMPT_VERSION, or an environment's primer_version, and note the digest here"
    )
