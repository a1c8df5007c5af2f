"""Axes of a study: what arms they make, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from places import PROJECT
from stage_settings import stage_settings

from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES, belongs_to_an_arm
from hgrpo.study.axis import Axis, as_text
from hgrpo.study.axis_arms import differing
from hgrpo.study.study import Study, load_study

CONFIGS = PROJECT / "configs"
NAME = "interventions"
# The key that each axis is about, as RAGEN's sweeps have it.
KEYS = {
    "top_p": "training.filter.value",
    "kl": "training.kl.init",
    "entropy": "training.entropy_bonus",
}
STRENGTHS = ["0", "0.001", "0.003", "0.01", "0.03", "0.1"]
LR = {"of": "PPO", "key": "training.lr", "values": [1e-4, 1e-3]}


def interventions(**overrides: object) -> Study:
    return load_study(CONFIGS / f"studies/{NAME}.yaml", overrides)


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """A copy of configs/ that a test may spoil."""
    return Path(shutil.copytree(CONFIGS, tmp_path / "configs"))


def refused(configs: Path, axes: dict, **keys: object) -> str:
    """The message about the study bakeoff with these axes, without the name of its file."""
    path = configs / "studies/bakeoff.yaml"
    path.write_text(
        yaml.safe_dump(yaml.safe_load(path.read_bytes()) | {"axes": axes} | keys), encoding="utf-8"
    )
    with pytest.raises(UserError) as caught:
        load_study(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_values_of_an_axis_without_an_arm_are_refused():
    with pytest.raises(UserError) as caught:
        interventions(**{"axes.kl.values": "0.1,0.2", "methods": "entropy_0.01"})
    message = "command line: axes.kl: not used by any arm of this run (entropy_0.01)"
    assert str(caught.value) == message
    assert list(interventions(**{"axes.kl.values": "0.1,0.2", "methods": "kl_0.2"}).methods)


def test_a_misspelt_axis_on_the_command_line_names_it():
    with pytest.raises(UserError) as caught:
        interventions(**{"axes.kll.values": "0,1"})
    assert str(caught.value).startswith("command line: ") and "axes.kll" in str(caught.value)


def test_interventions_train_twenty_arms_of_axes_and_one_more():
    study = interventions()
    trained = {name for name, method in study.methods.items() if method.train}
    of_axes = {arm for arms in study.axis_arms.values() for arm in arms.values()}
    assert len(of_axes) == 20 and trained - of_axes == {"PPOTopP_fewer"}
    arms = study.resolved()["methods"]
    batch = "training.minibatch_trajectories"
    assert differing(arms["top_p_0.9"], arms["PPOTopP_fewer"]) == [batch]
    assert {axis: list(arms) for axis, arms in study.axis_arms.items()} == {
        "top_p": ["1", "0.98", "0.95", "0.9", "0.8", "0.6", "0.4", "nofilter"],
        "kl": STRENGTHS,
        "entropy": [*STRENGTHS, "3"],
    }


def test_the_point_without_kl_and_entropy_is_one_arm_of_two_axes():
    study = interventions()
    arms = study.axis_arms
    assert arms["kl"]["0"] == arms["entropy"]["0"] == study.config.reference == "PPO"
    assert not {"kl_0", "entropy_0"} & set(study.methods)
    training = study.training["PPO"]
    assert (training.kl.init, training.entropy_bonus, training.filter) == (0, 0, None)


@pytest.mark.parametrize("axis", KEYS)
def test_the_arms_of_an_axis_differ_in_its_key_alone(axis):
    arms = interventions().axis_arms[axis]
    resolved = interventions().resolved()["methods"]
    first, *others = (resolved[arm] for value, arm in arms.items() if value != "nofilter")
    assert [differing(first, other) for other in others] == [[KEYS[axis]]] * len(others)


def test_the_sweeps_have_ragens_settings():
    study = interventions()
    top_p, strongest = study.training["top_p_0.9"], study.training["kl_0.1"]
    assert (top_p.kl.init, top_p.entropy_bonus) == (0.001, 0.001)
    assert (top_p.filter.strategy, top_p.filter.mode, top_p.filter.order, top_p.filter.value) == (
        *("top_p", "softmax", "largest"),
        0.9,
    )
    assert (strongest.kl.init, strongest.entropy_bonus, strongest.filter) == (0.1, 0, None)
    assert {training.kl.form for training in study.training.values()} == {"k3_k2_gradient"}
    assert not any(training.kl.adaptive for training in study.training.values())
    assert study.training["entropy_0.1"].kl.init == 0
    assert {study.methods[name].advantage for name in study.round_trajectories} == {"gae"}
    assert study.env.penalties == "fair"


def test_a_changed_value_changes_its_own_arm_alone():
    before, after = interventions(), interventions(**{"axes.kl.values": "0,0.001,0.003,0.05"})
    gone = {"kl_0.01", "kl_0.03", "kl_0.1"}
    assert set(before.methods) - set(after.methods) == gone
    assert set(after.methods) - set(before.methods) == {"kl_0.05"}
    for stage in filter(belongs_to_an_arm, STAGES):
        for arm in set(before.methods) - gone - {"SFTOnly"}:
            assert stage_settings(before, stage, arm) == stage_settings(after, stage, arm)


def test_an_arm_is_what_an_equal_method_file_makes(configs):
    method = {
        "name": "kl_0.01",
        "label": "KL 0.01",
        "advantage": "gae",
        "training": {"kl": {"init": 0.01}},
    }
    (configs / "methods/kl_0.01.yaml").write_text(yaml.safe_dump(method), encoding="utf-8")
    path = configs / f"studies/{NAME}.yaml"
    stated = yaml.safe_load(path.read_bytes())
    del stated["axes"], stated["evaluation"]["pairs"]
    path.write_text(yaml.safe_dump(stated | {"methods": ["PPO", "kl_0.01"]}), encoding="utf-8")
    for stage in filter(belongs_to_an_arm, STAGES):
        assert stage_settings(load_study(path), stage, "kl_0.01") == stage_settings(
            interventions(), stage, "kl_0.01"
        )


@pytest.mark.parametrize(
    ("overrides", "axis", "arms"),
    [
        ({"axes.kl.values": "0,0.05"}, "kl", {"0": "PPO", "0.05": "kl_0.05"}),
        ({"set": "axes.kl.values=[0, 5e-2]"}, "kl", {"0": "PPO", "0.05": "kl_0.05"}),
        (
            {"axes.top_p.values": "0.5,nofilter"},
            "top_p",
            {"0.5": "top_p_0.5", "nofilter": "top_p_nofilter"},
        ),
        (
            {"axes.lr": "{of: PPO, key: training.lr, values: [1.0e-4, 3.0e-4]}"},
            "lr",
            {"0.0001": "lr_0.0001", "0.0003": "PPO"},
        ),
        (
            {"axes.stop": "{of: PPO, key: training.carry_policy, values: [true, false]}"},
            "stop",
            {"true": "PPO", "false": "stop_false"},
        ),
    ],
)
def test_the_command_line_gives_values_and_axes(overrides, axis, arms):
    study = interventions(**overrides)
    assert study.axis_arms[axis] == arms
    assert set(arms.values()) <= set(study.methods)


@pytest.mark.parametrize(
    ("methods", "run"),
    [
        ("kl_0.001,top_p_0.9", ["kl_0.001", "top_p_0.9"]),
        # Another name of the shared point.
        ("kl_0,entropy_0,kl_0.1", ["PPO", "kl_0.1"]),
        ("SFTOnly", ["SFTOnly"]),
    ],
)
def test_a_run_has_the_arms_that_it_names(methods, run):
    study = interventions(methods=methods)
    assert list(study.methods) == study.config.methods == study.overridden["methods"] == run


def test_an_arm_of_an_axis_may_be_the_reference():
    assert interventions(reference="kl_0.01").has_reference
    assert interventions(reference="entropy_0").config.reference == "PPO"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (-0.0, "0"), (1.0, "1"), (0.98, "0.98"), (1e-05, "1e-05"), (1e22, "1e22")]
    + [(True, "true"), ("k2", "k2"), (-1, "-1"), (0.1234567891, "0.1234567891")],
)
def test_a_value_has_one_text(value, text):
    assert as_text(value) == text


@pytest.mark.parametrize("values", ["0.1,1e-3,3,word,true", [0.1, 0.001, 3, "word", True]])
def test_numbers_given_as_text_are_numbers(values):
    listed = values.split(",") if isinstance(values, str) else values
    axis = Axis(of="PPO", key="alpha", values=listed)
    assert axis.values == [0.1, 0.001, 3, "word", True]
    assert json.loads(axis.model_dump_json())["values"] == axis.values


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"values": [1, 1.0, 2]}, "axes.a.values: 1: duplicate"),
        ({"values": [0.1]}, "axes.a.values: an axis requires at least two values, not [0.1]"),
        ({"values": [0.1, {"lr": 1}]}, "axes.a.values: {'lr': 1} is neither a number nor a word"),
        ({"values": [0.1, float("nan")]}, "axes.a.values: nan is not a finite number"),
        ({"values": [0.1, "a/b"]}, "axes.a.values: 'a/b': only letters, digits"),
        ({"values": [0.1, -1]}, "axes.a: a_-1: training.lr: input should be greater than 0, not"),
        (
            {"of": "Progressive", "key": "credit.kind", "values": ["progress", "turnrd"]},
            "axes.a: a_progress and a_turnrd differ in credit.fit, credit.kind, ",
        ),
        ({"key": "training.lrr"}, "axes.a: a_0.0001: training.lrr: unknown key; did you mean 'lr'"),
        ({"key": "trainin.lr"}, "axes.a: a_0.0001: trainin: unknown key; did you mean 'training'?"),
        ({"valeus": [1, 2]}, "axes.a.valeus: unknown key; did you mean 'values'?"),
        ({"of": "PP0"}, "axes.a.of: 'PP0': no such file"),
        (
            {"fixed": {"training": {"lr": 1}}},
            "axes.a.fixed: `training.lr` is not allowed; ",
        ),
        ({"fixed": {"label": "x"}}, "axes.a.fixed: `label` is not allowed; the axis sets"),
        ({"without": "no_lr"}, "axes.a.without: no_lr: `key: training.lr` is not in a section"),
        ({"without": "0"}, "axes.a.without: 0: expected a word, such as `none`"),
        ({"of": "SFTOnly"}, "axes.a.of: SFTOnly is not a trained method"),
        (
            {"key": "training.kl.watch", "values": [False, 0]},
            "axes.a.values: a_false and a_0 have identical settings; list each value once",
        ),
    ],
)
def test_a_mistake_in_an_axis_is_one_line(configs, changed, expected):
    message = refused(configs, {"a": LR | changed})
    assert message.startswith(expected), message


@pytest.mark.parametrize(
    ("axes", "keys", "expected"),
    [
        # Another axis's arm, a variant, a method's file.
        (
            {"a": LR | {"values": ["b_c", "d"]}, "a_b": LR | {"values": ["c", "d"]}},
            {},
            "axes.a_b.values: c: the arm 'a_b_c' already exists in axes.a; rename",
        ),
        (
            {"a": LR},
            {"variants": {"a_0.001": {"of": "PPO"}}},
            "axes.a.values: 0.001: the arm 'a_0.001' already exists in variants; rename",
        ),
        ({"FilterTopK": LR | {"values": ["fewer", "x"]}}, {}, "axes.FilterTopK: FilterTopK_fewer:"),
        # A study.
        ({"alpha": LR}, {}, "axes.alpha: its target 'alpha_sweep' is also the name of"),
        # Another axis's labels.
        (
            {"a": LR | {"label": "b"}, "b": LR | {"fixed": {"training": {"epochs": 2}}}},
            {},
            "methods: a_0.0001 and b_0.0001 have the same label 'b 0.0001'",
        ),
    ],
)
def test_names_that_collide_are_refused(configs, axes, keys, expected):
    message = refused(configs, axes, **keys)
    assert message.startswith(expected), message


def test_a_study_may_have_the_axes_of_another(configs):
    path = configs / "studies/bakeoff.yaml"
    content = yaml.safe_load(path.read_bytes()) | {
        "axes_of": NAME,
        "methods": ["PPO"],
        "reference": "PPO",
    }
    content["evaluation"]["gates"] = []
    path.write_text(yaml.safe_dump(content | {"axes": {"a": LR}}), encoding="utf-8")
    study = load_study(path)
    assert list(study.axis_arms) == ["top_p", "kl", "entropy", "a"]
    assert "axes_of" not in study.resolved()
    assert list(load_study(path, {"axes.kl.values": "0,0.05"}).axis_arms["kl"]) == ["0", "0.05"]
    path.write_text(yaml.safe_dump(content | {"axes_of": "smoke"}), encoding="utf-8")
    with pytest.raises(UserError, match=r"axes_of: .*smoke\.yaml has no section `axes`"):
        load_study(path)
    path.write_text(yaml.safe_dump(content | {"axes_of": "intervention"}), encoding="utf-8")
    with pytest.raises(UserError, match=r"axes_of: 'intervention': no such file"):
        load_study(path)


def test_the_command_line_may_take_the_axes_of_another_study(configs):
    path = configs / "studies/interventions_qwen.yaml"
    stated = yaml.safe_load(path.read_bytes())
    whole = load_study(path)
    assert load_study(path, {"axes_of": "null"}).axis_arms == {}
    del stated["axes_of"], stated["evaluation"]["pairs"]
    path.write_text(yaml.safe_dump(stated), encoding="utf-8")
    assert load_study(path).axis_arms == {}
    typed = load_study(path, {"axes_of": NAME})
    assert typed.axis_arms == whole.axis_arms and set(typed.methods) == set(whole.methods)
    assert typed.overridden == {"axes_of": NAME}
    both = load_study(path, {"set": f"axes_of={NAME} axes.kl.values=0,0.05"})
    assert list(both.axis_arms["kl"]) == ["0", "0.05"]
    with pytest.raises(UserError) as refused:
        load_study(path, {"axes_of": "foo"})
    message = f"command line: {path} with axes_of overridden: axes_of: 'foo': no such file"
    assert str(refused.value).startswith(message) and "\n" not in str(refused.value)


def test_a_gate_may_name_an_arm_by_its_axis(configs):
    path = configs / f"studies/{NAME}.yaml"
    content = yaml.safe_load(path.read_bytes()) | {"reference": "kl_0.001"}
    content["evaluation"]["gates"] = [{"arm": "entropy_0", "expect": "no_difference"}]
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert load_study(path).config.evaluation.gates[0].arm == "PPO"
