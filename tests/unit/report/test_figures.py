"""Figures: same bytes every time, numbers beside them, and the rules they are drawn by."""

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest
from report_fixtures import inputs_of, resolved_arm, shipped, write_merged_study, write_study

from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.report import style
from hgrpo.report.arms import REFERENCE_COLOUR, read_arms
from hgrpo.report.draw import draw_all, study_drawings
from hgrpo.report.figures.credit import credit_table, own_credit_table
from hgrpo.report.inputs import read_inputs
from hgrpo.report.logs import (
    last_day,
    read_first_turns,
    read_fits,
    read_last_turns,
    read_logs,
)
from hgrpo.report.names import figure_names, run_figures
from hgrpo.report.style import read_index
from hgrpo.trajectories import store
from hgrpo.trajectories.trajectory import Trajectory, Turn


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_merged_study(
        tmp_path_factory.mktemp("figures"),
        seeds=(11, 23),
        rounds=2,
        n_test=48,
        n_validation=24,
        steps=4,
    )


@pytest.fixture(scope="module")
def inputs(study):
    return inputs_of(study)


@pytest.fixture(scope="module")
def turns(study):
    return read_first_turns(study.files("rl/*/*/round_1/turns.parquet"))


@pytest.fixture(scope="module")
def drawn(inputs, turns, tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    draw_all(inputs, turns, {}, read_fits([]), folder)
    return folder


def test_every_figure_is_valid_svg_with_its_numbers(drawn, study):
    index = read_index(drawn)
    expected = figure_names(study.config, 2) + run_figures(study.config, (11, 23))
    assert [entry["name"] for entry in index] == expected
    for entry in index:
        root = ElementTree.parse(drawn / f"{entry['name']}.svg").getroot()
        assert root.tag.endswith("svg")
        assert len(pd.read_csv(drawn / f"{entry['name']}.csv")) > 0
        assert entry["title"] and entry["caption"] and entry["alt"]


def test_drawing_twice_gives_the_same_bytes(drawn, inputs, turns, tmp_path):
    style.save_all(study_drawings(inputs, turns, {}, read_fits([])), tmp_path)
    paths = [path for path in tmp_path.iterdir() if path.name != style.INDEX]
    assert {path.suffix for path in paths} == {".svg", ".csv"}
    for path in paths:
        assert (drawn / path.name).read_bytes() == path.read_bytes(), path


def test_the_forest_holds_both_families_with_their_verdicts(drawn, inputs):
    table = pd.read_csv(drawn / "forest.csv")
    assert table.groupby("baseline").size().to_dict() == {"flatGRPO": 2, "SFTOnly": 3}
    svg = (drawn / "forest.svg").read_text(encoding="utf-8")
    for verdict in table["verdict"].unique():
        # Text is kept as text, so that it can be searched and read aloud.
        assert f">{verdict}</text>" in svg


def test_learning_curves_start_at_the_supervised_policy(drawn, inputs):
    table = pd.read_csv(drawn / "learning_curves.csv")
    methods = inputs.comparison.methods.set_index(["method", "temperature"])["success"]
    starts = table[table["round"] == 0]
    assert starts["method"].tolist() == ["flatGRPO", "Progressive", "RandomCredit"]
    assert starts["success"].tolist() == pytest.approx([methods["SFTOnly", 0.0]] * 3)


def test_budgets_are_running_sums_averaged_over_seeds(drawn, study):
    table = pd.read_csv(drawn / "equal_budget.csv").set_index(["method", "round"])
    seconds = []
    for seed in (11, 23):
        rows = []
        for number in (1, 2):
            path = study.root / f"rl/flatGRPO/seed_{seed}/round_{number}/train_log.json"
            rows += json.loads(path.read_bytes())["rows"]
        seconds.append(sum(row["elapsed_s"] for row in rows))
    assert table.loc[("flatGRPO", 2), "seconds"] == pytest.approx(np.mean(seconds))
    assert table.loc[("flatGRPO", 1), "trajectories"] == 4 * 256
    assert table.loc[("flatGRPO", 0), "tokens"] == 0


def test_a_study_without_sft_or_logs_still_has_its_figures(study, tmp_path):
    config = study.config | {
        "methods": {k: v for k, v in study.config["methods"].items() if k != "SFTOnly"}
    }
    inputs = read_inputs(config, study.root / "episodes.parquet", [])
    index = draw_all(inputs, {}, {}, read_fits([]), tmp_path)
    assert [entry["name"] for entry in index] == [*("forest", "task_types", "learning_curves")]


def test_a_missing_round_in_the_logs_is_named(study):
    paths = study.files("rl/flatGRPO/*/round_2/train_log.json")
    with pytest.raises(UserError, match="flatGRPO seed 11: the train log of round 1 is missing"):
        read_logs(paths)


def test_credit_shows_a_won_and_a_lost_rollout_of_one_task(turns, inputs):
    table = credit_table(turns, inputs.arms)
    rewards = table.groupby("rollout")["env_return"].first().tolist()
    assert rewards == [1.0, 0.0] and table["task_id"].nunique() == 1
    assert table["goal"].unique().tolist() == ["put a hot apple in diningtable."]
    progressive = table[(table["method"] == "Progressive") & (table["rollout"] == 0)]
    assert progressive["credit"].sum() == pytest.approx(1)


def test_an_arms_own_credit_is_that_of_its_last_round_and_lowest_seed(tmp_path):
    settings = {name: shipped("bakeoff")[name] for name in ("flatGRPO", "TurnRDV2")}
    study = write_study(tmp_path, seeds=(23, 11), rounds=3, steps=2, settings=settings)
    paths = study.files("rl/*/*/*/turns.parquet")
    arms = read_arms(study.config)
    assert arms.fitted == ["TurnRDV2"]
    table = own_credit_table(read_last_turns(paths, arms.fitted))
    assert table["method"].unique().tolist() == ["TurnRDV2"]
    assert table["round"].unique().tolist() == [3]
    assert table.groupby("rollout")["env_return"].first().tolist() == [1.0, 0.0]
    stored = store.read_turns(study.root / "rl/TurnRDV2/seed_11/round_3/turns.parquet").to_pandas()
    mine = stored[(stored["task_id"] == table["task_id"].iloc[0]) & (stored["rollout"] < 2)]
    assert table["credit"].tolist() == mine["credit"].tolist()
    assert own_credit_table(read_last_turns(paths[:1], ["TurnRDV2"])).empty


def test_the_day_is_that_of_the_last_round_and_old_logs_name_none(tmp_path):
    paths = [tmp_path / name for name in "abc"]
    times = (
        {"finished": "2026-02-03T23:59:59+00:00"},
        {"finished": "2026-02-04T00:00:01+00:00"},
        {},
    )
    for path, end in zip(paths, times, strict=True):
        path.write_text(json.dumps({"rows": []} | end), encoding="utf-8")
    assert last_day(paths) == "2026-02-04"
    assert last_day(paths[2:]) == last_day([]) == ""


@pytest.mark.parametrize("number", [5, 16])
def test_a_legend_stays_inside_its_figure(number):
    figure, axes = style.canvas()
    height = figure.get_figheight()
    handles = [
        axes[0, 0].plot([], [], label=f"TurnRD v2 K{i} lr1e-4 no guard")[0] for i in range(number)
    ]
    style.legend_below(figure, handles)
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1
    assert len(figure.legends[0].get_texts()) == number
    drawn = axes[0, 0].get_position().height * figure.get_figheight()
    assert drawn > 0.6 * height
    style.plt.close(figure)


def test_arms_keep_colours_apart_and_one_is_the_reference(study):
    arms = read_arms(study.config)
    colours = [arms[name].colour for name in arms.names]
    assert len(set(colours)) == len(colours)
    assert arms["flatGRPO"].colour == REFERENCE_COLOUR
    assert arms.untrained == "SFTOnly"
    backwards = study.config | {"methods": dict(reversed(study.config["methods"].items()))}
    assert read_arms(backwards).names == ["SFTOnly", "flatGRPO", "RandomCredit", "Progressive"]
    untrained = {name: resolved_arm(name) | {"train": False} for name in ("b", "c")}
    with pytest.raises(UserError, match="more than one untrained arm"):
        read_arms({"reference": "a", "methods": untrained})


@pytest.fixture
def coin_round(tmp_path):
    """A round of one trajectory whose observation does not word the goal."""
    turn = Turn(
        "You are in a hall.",
        "open door 2",
        (1, 2),
        1.0,
        1.0,
        True,
        False,
        credit=0.5,
        advantage=0.25,
    )
    played = [Trajectory(Task("hall-0", "hall-0", "hash", "hall"), 3, "find the coin")]
    played[0].turns.append(turn)
    folder = tmp_path / "flatGRPO/seed_1/round_1"
    folder.mkdir(parents=True)
    store.write_table(store.turn_table(played, 1, 0), folder / "turns.parquet")
    store.write_table(store.sequence_table(played, 1, 0), folder / "sequences.parquet")
    return folder


def test_the_goal_of_a_credit_picture_comes_from_the_file(coin_round):
    (turns,) = read_first_turns([coin_round / "turns.parquet"]).values()
    assert turns.to_dict("records") == [
        {
            "task_id": "hall-0",
            "rollout": 3,
            "turn": 0,
            "observation": "You are in a hall.",
            "action": "open door 2",
            "env_reward": 1.0,
            "admissible": True,
            "credit": 0.5,
            "advantage": 0.25,
            "progress": 1.0,
            "goal": "find the coin",
        }
    ]
