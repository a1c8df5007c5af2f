"""RubricJudge: the offline rubric in this process, without a server and without openai."""

import subprocess
import sys

import pytest
from judge_cases import (
    WON,
    account_of,
    counted,
    failures,
    group,
    odd_trajectories,
    prompt_of,
    settings,
    trajectory,
    values,
)

from hgrpo.credit.base import Context
from hgrpo.credit.judge import make
from hgrpo.credit.judge.protocol import Judgement
from hgrpo.credit.judge.rubric import RubricJudge
from hgrpo.errors import UserError
from hgrpo.games.environment import JudgeText
from hgrpo.games.kinds import load


@pytest.fixture
def judge_of(tmp_path):
    def build(**changes):
        return make(settings(**changes), Context("alfworld", cache_dir=tmp_path / "cache"))

    return build


def test_a_judgement_has_the_rubric_s_scores_and_counts_bytes_as_tokens(tmp_path):
    won, lost = trajectory(WON, success=True), trajectory(WON[:4])
    account = account_of(tmp_path)
    prompt = prompt_of([won, lost], "group")
    answers = dict(RubricJudge(load("alfworld").judge_text(), account).ask_all({"a": prompt}))
    assert answers == {
        "a": Judgement([[score for *_, score in WON], [4.0, 0.0, 4.0, 2.0]], "offline-rubric")
    }
    report = account.report()
    sent = sum(len(message["content"].encode()) for message in prompt.messages)
    # The answer: {"trajectories": [{"trajectory": 0, "scores": [{"turn": 0, "score": 4.0}, ...
    entries = [len('{"turn": 0, "score": 4.0}, ')] * 13
    tens = 2  # "10.0" has one more byte than "4.0"
    around = len(
        '{"trajectories": [{"trajectory": 0, "scores": []}, {"trajectory": 1, "scores": []}]}'
    )
    written = sum(entries) + tens + around - 2 * len(", ")
    assert (report["calls"], report["retries"], report["dollars"]) == (1, 0, 0.0)
    assert report["input_tokens"] == -(-sent // 4)
    assert report["output_tokens"] == -(-written // 4)


@pytest.mark.parametrize("normalisation", ["centred", "share"])
@pytest.mark.parametrize("variant", ["trajectory", "group"])
def test_odd_trajectories(judge_of, variant, normalisation):
    odd = odd_trajectories()
    judge = judge_of(variant=variant, normalisation=normalisation)
    for one in odd:  # K = 1
        (row,) = judge.assign(group([one]))
        assert row.shape == (len(one.turns),)
        expected = 0.0 if normalisation == "centred" else one.env_return
        assert row.sum() == pytest.approx(expected)
    rows = judge.assign(group([*odd, trajectory([])]))
    assert [row.shape for row in rows] == [(1,), (2,), (2,), (0,)]
    assert counted(judge)["fallbacks"] == 0


def test_a_call_cap_is_held_and_the_cache_goes_on(judge_of):
    capped = judge_of(max_calls=5, fallback_limit=0.5)
    rows = values(capped.assign(group(failures(8))))
    assert rows[5:] == [[0.0] * 4] * 3
    report = counted(capped)
    assert (report["calls"], report["fallback_call_cap"], report["fallbacks"]) == (5, 3, 3)
    again = judge_of(max_calls=0, fallback_limit=0.5)
    again.assign(group(failures(8)))
    assert (counted(again)["cache_hits"], counted(again)["fallback_call_cap"]) == (5, 3)


@pytest.mark.parametrize(
    ("scores", "mistake"),
    [([1.0], "expected exactly one score"), ([11.0] * 4, "a score is outside 0..10")],
)
def test_a_rubric_that_breaks_the_rules_is_named(tmp_path, scores, mistake):
    text = JudgeText("A game.", score=lambda goal, turns, completed: scores)
    with pytest.raises(UserError, match=rf"environment 'alfworld': {mistake}.*; see `score` in"):
        list(RubricJudge(text, account_of(tmp_path)).ask_all({"a": prompt_of(failures(1))}))


def test_it_needs_neither_openai_nor_a_server(project, tmp_path):
    code = f"""
import sys
sys.modules["openai"] = None
from pathlib import Path
from judge_cases import failures, group, settings
from hgrpo.credit.base import Context
from hgrpo.credit.judge import make
judge = make(settings(), Context("alfworld", cache_dir=Path({str(tmp_path)!r})))
assert judge.assign(group(failures(2)))[0].any()
assert not {{"http.server", "hgrpo.credit.judge.server", "torch"}} & sys.modules.keys()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{project}:{project / 'tests'}"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
