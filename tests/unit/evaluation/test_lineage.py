"""Arms with other parents, settings or code than the rest do not get into one report."""

import json

import pytest

from hgrpo.errors import UserError
from hgrpo.evaluation.lineage import check_lineage

SETTINGS = {"A": "sa", "B": "sb"}


def round_of(arm, number=1, **changes):
    return {
        "method": arm,
        "seed": 11,
        "round": number,
        "policy": f"{arm}{number}",
        "settings": SETTINGS[arm],
        "code": "c",
        "train_dtype": "float32",
        "parents": {"base": "b", "sft": "s", "policy": "s"} | changes.pop("parents", {}),
    } | changes


def evaluation(arm, number=1, **changes):
    policy = f"{arm}{number}" if number else "s"
    given = {"method": arm, "seed": 11, "round": number, "policy": policy, "base": "b"}
    return given | changes


@pytest.fixture
def check(tmp_path):
    """Writes summaries as files and checks them."""

    def written(kind, summaries):
        paths = []
        for found in summaries:
            paths.append(tmp_path / f"{kind}_{found['method']}_{found['round']}.json")
            paths[-1].write_text(json.dumps(found), encoding="utf-8")
        return paths

    return lambda rounds, evaluations, settings=SETTINGS: check_lineage(
        written("rl", rounds), written("eval", evaluations), settings
    )


ROUNDS = [round_of("A"), round_of("A", 2, parents={"policy": "A1"}), round_of("B")]
EVALUATIONS = [
    evaluation("SFTOnly", 0),
    evaluation("A"),
    evaluation("A", 2),
    evaluation("B"),
]


def test_arms_that_belong_together(check):
    check(ROUNDS, EVALUATIONS)
    check([], [])
    check([], EVALUATIONS[:1])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            round_of("B", parents={"sft": "s2"}),
            r"rl_B_1.json: the supervised policy is s2, but s in",
        ),
        (round_of("B", parents={"base": "b2"}), r"rl_B_1.json: the base model is b2, but b in"),
        (round_of("B", train_dtype="bfloat16"), r"the number format of the training passes is bfl"),
        (round_of("B", settings="old"), r"rl_B_1.json: B was trained with other settings"),
        (round_of("B", policy="B9"), r"eval_B_1.json: it evaluated another policy than .*rl_B_1"),
    ],
)
def test_an_arm_that_does_not_belong(check, changed, said):
    with pytest.raises(UserError, match=said):
        check([*ROUNDS[:2], changed], EVALUATIONS)


def test_rounds_of_an_arm_that_ran_different_code(check):
    later = round_of("A", 2, parents={"policy": "A1"}, code="c2")
    with pytest.raises(UserError, match=r"rl_A_2.json: the code of A is c2, but c in .*rl_A_1"):
        check([ROUNDS[0], later], [])


def test_a_round_that_did_not_continue_the_round_before(check):
    later = round_of("A", 2, parents={"policy": "other"})
    with pytest.raises(UserError, match=r"A_2.json: it started from another policy than .*A_1"):
        check([ROUNDS[0], later], [])


@pytest.mark.parametrize("changes", [{"policy": "s2"}, {"base": "b2"}])
def test_an_evaluation_of_another_policy_or_base(check, changes):
    with pytest.raises(UserError, match=r"eval_SFTOnly_0.json"):
        check(ROUNDS, [evaluation("SFTOnly", 0, **changes)])


@pytest.mark.parametrize("text", ["", "{", "[]", "7"])
def test_a_summary_that_is_none(tmp_path, text):
    path = tmp_path / "summary.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="summary.json: "):
        check_lineage([path], [], {})


def test_a_summary_of_an_older_version(check):
    old = {key: value for key, value in round_of("B").items() if key != "parents"}
    with pytest.raises(UserError, match=r"rl_B_1.json: it does not record parents.base, parents.s"):
        check([old], [])


@pytest.mark.parametrize("key", ["base", "sft", "policy"])
def test_a_summary_that_lacks_one_parent(check, key):
    broken = round_of("B")
    del broken["parents"][key]
    with pytest.raises(UserError, match=f"rl_B_1.json: it does not record parents.{key}, so an"):
        check([broken], [])
    with pytest.raises(UserError, match="rl_B_1.json: it does not record parents.base, parents.s"):
        check([round_of("B") | {"parents": 3}], [])
