"""Figures of a study with axes: a figure for each, and one of the metrics of collapse."""

import json

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from report_fixtures import STUDIES, inputs_of, write_merged_study
from stage_settings import stage_settings

from hgrpo.evaluation.comparison import compare
from hgrpo.report.axes import AxisArms, kept_the_same, read_axes
from hgrpo.report.draw import study_drawings
from hgrpo.report.figures.axes import axis_figure
from hgrpo.report.logs import read_fits, run_of
from hgrpo.report.names import figure_names
from hgrpo.study.study import load_study
from hgrpo.trajectories.collapse_row import as_row

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
        found = {
            "mutual_information": 3.0 - number - (method == "entropy_0.1"),
            "conditional_entropy": 1.0 + number,
            "retrieval_at_1": 0.5,
            "chance_at_1": 0.1,
        }
        log["rows"][-1] |= as_row({"any_turn": found, "first_turn": {"mutual_information": 9.0}})
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


def test_the_shared_point_stands_in_both_figures(drawn):
    for axis, values in (("kl", ["0", "0.01", "0.1"]), ("entropy", ["0", "0.1"])):
        table = drawn[f"axis_{axis}"].data
        assert table["value"].tolist() == values and table["method"].iloc[0] == "PPO"
    one, other = (drawn[f"axis_{axis}"].data.iloc[0]["endpoint"] for axis in ("kl", "entropy"))
    assert one == other


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
    own = data.loc["kl_0.1"]
    # The last of three steps is measured before its update.
    assert own["trained"].tolist() == pytest.approx([2 / 3, 5 / 3])
    assert own["mutual_information"].tolist() == [2, 1]


def test_metrics_that_were_not_measured_are_gaps(study, tmp_path):
    bare = write_merged_study(tmp_path, methods=("SFTOnly", "flatGRPO"), **SMALL)
    bare.config["collapse"] = True
    found = {each.name for each in study_drawings(inputs_of(bare), {}, {}, read_fits([]))}
    assert "collapse" in found and not [name for name in found if name.startswith("axis")]


def test_an_axis_of_which_one_arm_is_run_has_no_figure():
    chosen = load_study(STUDIES / "interventions.yaml", {"methods": ["PPO", "kl_0.1"]})
    axes = read_axes(stage_settings(chosen, "figures"))
    assert [(axis.name, dict(axis.arms)) for axis in axes] == [
        ("kl", {"0": "PPO", "0.1": "kl_0.1"})
    ]
    assert "axes" not in stage_settings(load_study(STUDIES / "smoke.yaml"), "figures")


AXIS = AxisArms(
    "p", "p", "training.filter.value", {"0.9": "a", "0.6": "b", "0.4": "c", "none": "d"}
)


def logs(**kept):
    """Three batches of each arm: what it kept, and what it played."""
    rows = [
        {
            "method": method,
            "seed": 11,
            "batch": batch,
            **dict.fromkeys(("n_trajectories", "std_reward", "success_rate"), 1.0),
            "mean_reward": played,
            "filter_kept_groups": groups,
            "filter_kept_mass": None if groups is None else groups / 10,
        }
        for method, batches in kept.items()
        for batch, (groups, played) in enumerate(batches, start=1)
    ]
    return pd.DataFrame(rows).astype({"filter_kept_groups": float, "filter_kept_mass": float})


def test_values_that_kept_the_same_groups_are_named():
    # b and c play alike for two batches, and keep one group in each; a keeps more.
    found = logs(
        a=[(3, 0.0), (2, 0.0), (3, 0.1)],
        b=[(1, 0.0), (1, 0.0), (1, 0.2)],
        c=[(1, 0.0), (1, 0.0), (2, 0.3)],
        d=[(None, 0.0)] * 3,
    )
    assert kept_the_same(found, AXIS) == [("0.6", "0.4", 2)]


def test_batches_after_the_first_difference_say_nothing():
    # They differ in the second batch; that the third seems equal is chance.
    one, other = [(1, 0.0), (1, 0.1), (4, 0.2)], [(1, 0.0), (2, 0.9), (5, 0.2)]
    axis = AxisArms("p", "p", "training.filter.value", {"0.6": "b", "0.4": "c"})
    assert kept_the_same(logs(b=one, c=other), axis) == [("0.6", "0.4", 1)]
    assert kept_the_same(logs(b=[(None, 0.0)], c=[(1, 0.0)]), axis) == []


def test_one_seed_of_an_axis_has_no_bars(study, drawn):
    inputs = inputs_of(study)
    one = compare(inputs.episodes.query("seed == 11"), inputs.comparison.protocol)
    captions = [
        axis_figure(one, inputs.logs, inputs.stops, inputs.collapse, inputs.arms, axis).caption
        for axis in inputs.axes
    ]
    assert all("Bars are" in drawn[f"axis_{axis}"].caption for axis in AXES)
    assert len(captions) == 3 and not any("interval" in caption for caption in captions)
    plt.close("all")
