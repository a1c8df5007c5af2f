"""Figures of a study with axes: a figure for each, and one of the metrics of collapse."""

import json

import pytest
from report_fixtures import STUDIES, inputs_of, write_merged_study
from stage_settings import stage_settings

from hgrpo.report.draw import study_drawings
from hgrpo.report.logs import read_fits, run_of
from hgrpo.report.names import figure_names
from hgrpo.study.study import load_study
from hgrpo.trajectories.log_row import as_row

SMALL = {"seeds": (11, 23), "rounds": 2, "n_test": 24, "n_validation": 12, "steps": 3}
ARMS = ("SFTOnly", "PPO", "kl_0.01", "kl_0.1", "entropy_0.1", "top_p_0.9", "top_p_0.4")
AXES = ["top_p", "kl", "entropy"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Some arms of the three sweeps; one is stopped, and all measure collapse."""
    chosen = load_study(STUDIES / "interventions.yaml", {"methods": list(ARMS)})
    config = stage_settings(chosen, "figures")
    settings = {name: config["methods"][name] for name in config["order"]}
    study = write_merged_study(tmp_path_factory.mktemp("sweeps"), settings=settings, **SMALL)
    for path in study.files("rl/*/*/*/train_log.json"):
        method, seed, number = run_of(path)
        log = json.loads(path.read_bytes())
        metrics = {
            "mutual_information": 3.0 - number - (method == "entropy_0.1"),
            "conditional_entropy": 1.0 + number,
            "retrieval_at_1": 0.5,
            "chance_at_1": 0.1,
        }
        log["rows"][-1] |= as_row({"any_turn": metrics, "first_turn": {"mutual_information": 9.0}})
        if (method, seed, number) == ("entropy_0.1", 23, 2):
            rule = {"status": "stopped", "rule": "reward_collapse", "round": 2, "step": 1}
            log["ended"] = rule
        path.write_text(json.dumps(log), encoding="utf-8")
    study.config.update({key: config[key] for key in ("axes", "collapse")})
    return study


@pytest.fixture(scope="module")
def drawn(study):
    drawings = study_drawings(inputs_of(study), {}, {}, read_fits([]))
    return {drawing.name: drawing for drawing in drawings}


def test_each_axis_has_its_figure(study, drawn):
    announced = [
        name for name in figure_names(study.config, 2) if name.startswith(("axis", "coll"))
    ]
    assert announced == [*(f"axis_{axis}" for axis in AXES), "collapse"]
    assert [name for name in drawn if name.startswith(("axis", "coll"))] == announced


def test_the_numbers_are_those_of_the_arms(study, drawn):
    table = drawn["axis_entropy"].data.set_index("value")
    assert table["failed"].to_dict() == {"0": 0, "0.1": 1}
    assert "1 of 2 at 0.1" in drawn["axis_entropy"].caption
    # From 2 and 1 after round 1 to 1 and 0 after round 2.
    assert table["mutual_information_first"].tolist() == [2, 1]
    assert table["mutual_information_last"].tolist() == [1, 0]
    assert table["conditional_entropy_last"].tolist() == [3, 3]
    methods = inputs_of(study).comparison.methods.set_index(["method", "temperature"])
    assert table.loc["0.1", "endpoint"] == methods.loc[("entropy_0.1", 0.0), "endpoint"]


def test_collapse_shows_every_arm_round_by_round(drawn):
    data = drawn["collapse"].data.set_index("method")
    assert set(data.index) == set(ARMS) - {"SFTOnly"}
    curve = data.loc["kl_0.1"]
    # The last of three steps is measured before its update.
    assert curve["trained"].tolist() == pytest.approx([2 / 3, 5 / 3])
    assert curve["mutual_information"].tolist() == [2, 1]


def test_an_axis_of_which_one_arm_is_run_has_no_figure():
    chosen = load_study(STUDIES / "interventions.yaml", {"methods": ["PPO", "kl_0.1"]})
    axes = stage_settings(chosen, "figures")["axes"]
    assert [(axis["name"], dict(axis["arms"])) for axis in axes] == [
        ("kl", {"0": "PPO", "0.1": "kl_0.1"})
    ]
    assert "axes" not in stage_settings(load_study(STUDIES / "smoke.yaml"), "figures")
