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
        ({"pears": []}, "pears: unknown key; did you mean 'pairs'?"),
        ({"piece": "rll"}, "piece: 'rll': unknown piece; did you mean 'rl'?"),
        ({"pairs": [["A", "C"]]}, "pairs: unknown arm 'C'; known: A, B"),
        ({"again": "C"}, "again: unknown arm 'C'; known: A, B"),
        ({"arms": {}, "pairs": []}, "arms: expected at least one arm"),
        ({"pairs": [["A"]]}, "pairs: expected [arm, against] or [arm, against, said]"),
        ({"pairs": [["A", "B", "lower"]]}, "pairs: 'A': 'lower' is not a verdict of this metric"),
        ({"pairs": [["A", "B", "bettr"]]}, "pairs.0.said: input should be 'better', 'worse'"),
        ({"arms": {"A": {"seeds": [7]}, "B": {}}}, "A: all arms have the same seeds; set"),
        ({"grid": {"label": "{method}", "over": {"method": ["A"]}}}, "label 'A' is not unique"),
        ({"again": "A", "arms": {"A": {}, "B": {}, "A, other seeds": {}}}, "label 'A, other see"),
        ({"grid": {"label": "{metod}", "over": {"method": [1]}}}, "grid.label: 'metod' is not a"),
        ({"metric": {"column": "x", "at": "time"}}, "metric: `at: time` requires `below` or"),
        ({"metric": {"column": "x", "at": "mean", "until": 4}}, "metric.until: requires `at: end`"),
        ({"published": {"A": {"test_eror": [0.1, 0.2]}}}, "published: unknown metric 'test_eror';"),
        ({"arms": {"A": {"methd": "DG"}}, "pairs": []}, "A: methd: unknown key; did you mean"),
        ({"figures": [FIGURE | {"kind": "points", "setting": "dela"}]}, "figures: f: unknown"),
        ({"figures": [FIGURE | {"across": "entropy"}]}, "figures.0: `kind: points` requires"),
    ],
)
def test_mistakes_take_one_line(changes, expected):
    with pytest.raises(UserError) as raised:
        resolve(study(**changes), "small.yaml")
    assert str(raised.value).startswith(f"small.yaml: {expected}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_study_of_the_project_can_run_whole_and_tiny(path):
    declared = read_study(path)
    for tiny in (False, True):
        arms = resolve(declared, str(path), tiny)
        assert {*declared.labels} <= {*arms}
    assert declared.figures and (declared.pairs or declared.identical)


def test_the_inferences_are_five():
    inferences = [read_study(path).inference for path in FOLDER.glob("*.yaml")]
    assert sorted(each.number for each in inferences if each) == [1, 2, 3, 4, 5]
    assert DECLARED.get("inference") is None
