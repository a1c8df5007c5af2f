"""The assigner around a stand-in judge: calls, counts, and the limit of fallbacks."""

from dataclasses import replace

import numpy as np
import pytest
from judge_cases import counted, failures, group, settings, trajectory

from hgrpo.credit.judge.accounting import Account
from hgrpo.credit.judge.assigner import JudgeCredit
from hgrpo.credit.judge.cache import Database, Question
from hgrpo.credit.judge.protocol import CallError, Judgement
from hgrpo.errors import UserError
from hgrpo.games.kinds import load

TEXT = load("alfworld").judge_text()


class StandIn:
    """Gives every turn of the k-th trajectory shown the scores 0, 1, 2, ...; or fails."""

    def __init__(self, failing=(), reason="timeout"):
        self.prompts = []
        self.failing = set(failing)
        self.reason = reason

    def ask_all(self, prompts):
        for key, prompt in prompts.items():
            number = len(self.prompts)
            self.prompts.append(prompt)
            if number in self.failing:
                yield key, CallError(self.reason)
            else:
                scores = [[float(t) for t in range(turns)] for turns in prompt.turns]
                yield key, Judgement(scores, "stand-in-1")


@pytest.fixture
def make(tmp_path):
    def build(client, text=TEXT, **changes):
        chosen = settings(**changes)
        database = Database(tmp_path / "judge.sqlite")
        account = Account(chosen, database)
        return JudgeCredit(chosen, "alfworld", text, database, client, account)

    return build


def values(rows):
    return [row.tolist() for row in rows]


def test_a_trajectory_is_judged_once_in_a_study(make):
    client = StandIn()
    first = make(client)
    played = failures(3)
    rows = first.assign(group([*played, played[0]]))
    assert values(rows) == [pytest.approx([-0.15, -0.05, 0.05, 0.15])] * 4
    assert (counted(first)["judged"], counted(first)["cache_hits"]) == (4, 1)
    again = make(client)
    assert values(again.assign(group(played))) == values(rows[:3])
    assert counted(again)["cache_hits"] == 3
    assert len(client.prompts) == 3


def test_group_and_trajectory_judgements_do_not_mix(make):
    client = StandIn()
    make(client).assign(group(failures(2)))
    together = make(client, variant="group")
    together.assign(group(failures(2)))
    assert [prompt.turns for prompt in client.prompts] == [(4,), (4,), (4, 4)]
    together.assign(group(failures(2)))
    assert len(client.prompts) == 3
    assert (counted(together)["judged"], counted(together)["cache_hits"]) == (4, 2)


@pytest.mark.parametrize("variant", ["trajectory", "group"])
def test_groups_taken_together_are_as_groups_taken_singly(make, variant, tmp_path):
    groups = [group(failures(3, start)) for start in (0, 3, 10)]
    together = make(StandIn(), variant=variant).assign_many(groups)
    singly = make(StandIn(), variant=variant, temperature=1.0)
    assert list(map(values, together)) == [values(singly.assign(one)) for one in groups]


@pytest.mark.parametrize("variant", ["trajectory", "group"])
def test_trajectories_without_turns_are_not_judged(make, variant):
    client = StandIn()
    judge = make(client, variant=variant)
    empty = trajectory([])
    rows = judge.assign(group([empty, *failures(1), empty]))
    assert [row.shape for row in rows] == [(0,), (4,), (0,)]
    assert np.ptp(rows[1]) > 0
    assert judge.assign(group([empty])) is not None
    assert counted(judge)["judged"] == 1
    assert [prompt.turns for prompt in client.prompts] == [(4,)]


@pytest.mark.parametrize(
    ("normalisation", "uniform"), [("centred", [0.0, 0.0]), ("share", [0.5, 0.5])]
)
def test_a_failure_gives_uniform_credit_that_is_counted_and_not_cached(
    make, normalisation, uniform
):
    won = trajectory([("go", "a"), ("take", "b")], success=True)
    other = trajectory([("go", "x"), ("take", "y")], success=True)
    judge = make(StandIn({0}), normalisation=normalisation, fallback_limit=0.5)
    rows = judge.assign(group([won, other]))
    assert rows[0].tolist() == uniform
    assert rows[1].tolist() != uniform
    report = counted(judge)
    assert (report["fallbacks"], report["fallback_timeout"], report["fallback_share"]) == (
        1,
        1,
        0.5,
    )
    assert judge.cache.get(judge._questions(group([won]))[0][0]) is None
    second = make(StandIn(), normalisation=normalisation)
    assert second.assign(group([won]))[0].tolist() != uniform


@pytest.mark.parametrize("size", [1, 29])
def test_a_step_fails_when_its_share_of_fallbacks_passes_the_limit(make, size):
    judge = make(StandIn(range(3), "malformed"), fallback_limit=0.1)
    failed = min(3, size)
    with pytest.raises(
        UserError,
        match=rf"judge offline-rubric at service: {failed} of {size} trajectories have no "
        rf"judgement \(malformed {failed}\), more than `credit.fallback_limit: 0.1` allows; "
        "malformed: malformed$",
    ):
        judge.assign_many([group(failures(size))])


def test_a_step_that_asks_twice_is_judged_as_a_whole(make):
    judge = make(StandIn({20}, "timeout"), fallback_limit=0.1)
    judge.assign(group(failures(20)))
    judge.assign(group(failures(2, 50)))  # one of these two failed, but only one of 22
    assert counted(judge)["fallbacks"] == 1


def test_other_rules_are_another_judge_only_for_the_rubric(make):
    client, elsewhere = StandIn(), {"model": "gpt", "base_url": "http://host/v1"}
    others = replace(TEXT, rubric_version="other")
    make(client).assign(group(failures(1)))
    make(client, others).assign(group(failures(1)))
    assert len(client.prompts) == 2
    make(client, others, **elsewhere).assign(group(failures(1)))
    make(client, **elsewhere).assign(group(failures(1)))
    assert len(client.prompts) == 3


def test_another_primer_is_another_prompt_for_every_judge(make):
    client, elsewhere = StandIn(), {"model": "gpt", "base_url": "http://host/v1"}
    for text in (TEXT, replace(TEXT, primer="Another primer.", primer_version="b")):
        make(client, text).assign(group(failures(1)))
        make(client, text, **elsewhere).assign(group(failures(1)))
    assert len(client.prompts) == 4
    assert [prompt.user.startswith("Another primer.") for prompt in client.prompts] == [
        *(False, False),
        *(True, True),
    ]


def test_cached_answers_of_earlier_versions_stay_valid(make):
    """Keys computed by the version before the rubric moved to the environments."""
    question = make(StandIn())._questions(group(failures(1)))[0][0]
    assert question.version == "3+rubric-4e1d479b306dc7a1"
    assert question.key == "f90367463c8e2d62fc9bf688440f5cbc6d127347a72827fe88de8d84319fe62c"
    model = make(StandIn(), model="gpt", base_url="http://host/v1")
    question = model._questions(group(failures(1)))[0][0]
    assert question.version == "3"
    assert question.key == "871d2023d3d6bd6320d02ddeb0edd997399b6a960a20bd3b07e0bfa73c47faab"


def test_answers_are_kept_as_they_arrive(make):
    class Dying(StandIn):
        def ask_all(self, prompts):
            answers = super().ask_all(prompts)
            yield next(answers)
            raise KeyboardInterrupt

    judge = make(Dying())
    with pytest.raises(KeyboardInterrupt):
        judge.assign(group(failures(2)))
    question: Question = judge._questions(group(failures(1)))[0][0]
    assert judge.cache.get(question) is not None


def test_earlier_steps_neither_excuse_nor_burden_a_step(make):
    judge = make(StandIn({40, 41}, "timeout"), fallback_limit=0.1)
    judge.assign(group(failures(40)))
    judge.report()
    with pytest.raises(UserError, match="2 of 10 trajectories"):
        judge.assign(group(failures(10, 50)))
    judge.report()
    judge.assign(group(failures(10, 90)))
