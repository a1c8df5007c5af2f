"""Files of studies: what they declare, what is refused, and the arms that come of them."""

from pathlib import Path

import pytest
from study_files import DECLARED, study

from hgrpo.errors import UserError
from hgrpo.sandbox.studies.study import read_study, resolve

FIGURE = {"name": "f", "title": "F", "panels": ["entropy"]}
FOLDER = Path(__file__).parents[4] / "configs/sandbox"


def test_an_arm_is_the_base_with_its_changes():
    arms = resolve(study(again="A"), "small.yaml")
    assert list(arms) == ["A", "B", "A, other seeds"]
    assert (arms["A"].method, arms["A"].num_steps, arms["A"].seeds) == ("DG", 8, (0, 1, 2))
    assert arms["B"].rule.model_dump() == {
        "clip": 0.2,
        "beta": 0.0,
        "norm": "std",
        "reduction": "token",
    }
    assert arms["A, other seeds"].seeds == (1000, 1001, 1002)
    assert arms["A, other seeds"].model_dump(exclude={"seeds"}) == arms["A"].model_dump(
        exclude={"seeds"}
    )


def test_a_grid_has_an_arm_for_each_combination():
    grid = {"label": "{method}, delay {delay}", "over": {"method": ["DG", "PG"], "delay": [1, 3]}}
    arms = resolve(study(arms={}, grid=grid, pairs=[]), "small.yaml")
    assert list(arms) == ["DG, delay 1", "DG, delay 3", "PG, delay 1", "PG, delay 3"]
    assert [arm.delay for arm in arms.values()] == [1, 3, 1, 3]


def test_a_tiny_arm_has_a_few_steps_and_two_seeds_and_changes_of_its_own():
    arms = resolve(study(again="A", tiny={"batch_size": 8}), "small.yaml", tiny=True)
    assert {(arm.num_steps, arm.batch_size) for arm in arms.values()} == {(4, 8)}
    assert arms["A"].seeds == (0, 1) and arms["A, other seeds"].seeds == (1000, 1001)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"pears": []}, "small.yaml: pears: unknown key; did you mean 'pairs'?"),
        ({"piece": "rll"}, "small.yaml: piece: 'rll': there is no such piece; did you mean 'rl'?"),
        ({"pairs": [["A", "C"]]}, "small.yaml: pairs: no arm 'C'; known: A, B"),
        ({"again": "C"}, "small.yaml: again: no arm 'C'; known: A, B"),
        ({"arms": {}, "pairs": []}, "small.yaml: arms: at least one was expected"),
        ({"pairs": [["A", "A"]]}, "small.yaml: pairs: 'A' is compared with itself"),
        (
            {"pairs": [["A", "B"], ["A", "B"]]},
            "small.yaml: pairs: 'A' against 'B' is listed twice",
        ),
        (
            {"pairs": [["A"]]},
            "small.yaml: pairs: [arm, against] or [arm, against, said] was expected, not ['A']",
        ),
        (
            {"pairs": [["A", "B", "lower"]]},
            "small.yaml: pairs: 'A': 'lower' is no verdict of this metric; possible: better, worse",
        ),
        (
            {"pairs": [["A", "B", "equivalent"]]},
            "small.yaml: pairs: 'A': 'equivalent' is no verdict of this metric; possible: better, ",
        ),
        ({"seeds": 1001}, "small.yaml: seeds: input should be less than or equal to 1000"),
        (
            {"arms": {"A": {"method": "DG", "seeds": [7, 8, 9]}, "B": {"method": "GRPO"}}},
            "small.yaml: A: seeds are the same in every arm; set `seeds` of the study",
        ),
        (
            {"again": "A", "arms": {"A": {}, "B": {}, "A, other seeds": {}}},
            "small.yaml: again: 'A, other seeds' is the label of another arm",
        ),
        (
            {"grid": {"label": "{seeds}", "over": {"seeds": [[0, 1], [2, 3]]}}},
            "small.yaml: grid: seeds are the same in every arm; set `seeds` of the study",
        ),
        (
            {"arms": {"base": {"method": "DG"}}, "pairs": []},
            "small.yaml: arms: no arm may be called 'base', the key of what all arms share",
        ),
        (
            {"grid": {"label": "{method}", "over": {"method": ["A"]}}},
            "small.yaml: grid: label 'A' is that of another arm",
        ),
        (
            {"grid": {"label": "{metod}", "over": {"method": ["DG"]}}},
            "small.yaml: grid.label: no setting 'metod' under over; did you mean 'method'?",
        ),
        (
            {"pairs": [["A", "B", "bettr"]]},
            "small.yaml: pairs.0.said: 'bettr': there is no such verdict; did you mean 'better'?",
        ),
        (
            {"metric": {"column": "test_error", "at": "time"}},
            "small.yaml: metric: `at: time` needs one of below and above; nothing else reads them",
        ),
        (
            {"metric": {"column": "test_error", "at": "mean", "until": 4}},
            "small.yaml: metric.until: only `at: end` reads it",
        ),
        (
            {"published": {"A": {"test_eror": [0.1, 0.2]}}},
            "small.yaml: published: no metric 'test_eror'; did you mean 'test_error'?",
        ),
        (
            {"arms": {"A": {"methd": "DG"}}, "pairs": []},
            "small.yaml: A: methd: unknown key; did you mean 'method'?",
        ),
        (
            {"arms": {"A": {"method": "DGG"}}, "pairs": []},
            "small.yaml: A: method: 'DGG': there is no such one; did you mean 'DG'?",
        ),
        (
            {"figures": [FIGURE | {"kind": "points", "setting": "dela"}]},
            "small.yaml: figures: f: no setting 'dela'; did you mean 'delay'?",
        ),
        (
            {"figures": [FIGURE | {"kind": "points"}]},
            "small.yaml: figures.0: `kind: points` needs one of across and setting; nothing else",
        ),
        (
            {"figures": [FIGURE | {"across": "entropy"}]},
            "small.yaml: figures.0: `kind: points` needs one of across and setting; nothing else",
        ),
    ],
)
def test_mistakes_take_one_line(changes, expected):
    with pytest.raises(UserError) as raised:
        resolve(study(**changes), "small.yaml")
    assert str(raised.value).startswith(expected)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_study_of_the_project_can_run_whole_and_tiny(path):
    declared = read_study(path)
    for tiny in (False, True):
        arms = resolve(declared, str(path), tiny)
        assert {*declared.labels} <= {*arms}
    assert declared.figures and (declared.pairs or declared.identical)


def test_the_inferences_are_five():
    found = [read_study(path).inference for path in FOLDER.glob("*.yaml")]
    assert sorted(each.number for each in found if each) == [1, 2, 3, 4, 5]
    assert DECLARED.get("inference") is None
