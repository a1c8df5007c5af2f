"""When a study is warned about, by hand and on the published studies."""

import json

import evidence
import pandas as pd
import pytest

from hgrpo.evaluation.cautions import dead_caution, far_from_expert, first_collapse, poor_expert


def test_an_sft_policy_far_below_its_expert():
    line = far_from_expert((0.017, 0.017), (0.7, 0.7))
    assert line.startswith(
        "The SFT policy is far below its expert: played greedily, it solves 1.7 % of "
    )
    assert "the expert solves 70.0 %" in line and "sft.epochs" in line
    assert far_from_expert((0.232, 0.232), (0.7, 1.0)) and not far_from_expert(
        (0.24, 0.24), (0.7, 1.0)
    )
    # Where episodes pay in part, a policy may be near its expert in what it is paid.
    assert not far_from_expert((0.02, 0.65), (0.3, 0.72))
    assert not far_from_expert((0.0, 0.0), (0.0, 1.0))  # the expert itself runs out of turns


def test_an_expert_that_solves_few_games():
    line = poor_expert(0.0)
    assert line.startswith("The expert, which SFT imitates, solves 0.0 % of its games within ")
    # One success or more in a group of eight: 1 - 0.95^8 = 0.337, and 1 - 0.951^8 = 0.331.
    assert poor_expert(0.049) and not poor_expert(0.05)


def test_no_published_sft_policy_is_far_below_its_expert(project):
    seen = 0
    for folder in sorted((project / "docs/tables").iterdir()):
        # A study of which only slices are published has no tables yet.
        if not (folder / "expert.json").is_file() or evidence.incomplete(folder):
            continue
        expert = json.loads((folder / "expert.json").read_text(encoding="utf-8"))["success"]["all"]
        assert poor_expert(expert["at_turn_cap"]) == "", folder.name
        table = pd.read_csv(folder / "sft_temperatures.csv")
        greedy = table.query("panel == 'test' and temperature == 0").iloc[0]
        theirs = expert["at_turn_cap"], expert.get("score", 1.0)
        returns = greedy.get("mean_return", greedy["success"])
        assert far_from_expert((greedy["success"], returns), theirs) == "", folder.name
        seen += 1
    assert seen >= 10


@pytest.mark.parametrize(
    ("success", "start", "n_tasks", "place"),
    [
        ([0.0, 0.3], 0.3, 100, 0),
        ([0.31, 0.07], 0.3, 100, 1),  # below a quarter of 0.31, which is 0.0775
        ([0.31, 0.08], 0.3, 100, None),
        # The best so far counts, not the start: a quarter of 0.6 is 0.15.
        ([0.6, 0.14], 0.1, 100, 1),
        ([0.6, 0.14], 0.0, 100, 1),  # no SFT policy was evaluated
        ([0.0, 0.0], 0.0, 100, None),
        # 0 of 16 where 0.2 is expected has the probability 0.8^16 = 0.028; of 40 it is 0.0001.
        ([0.0], 0.2, 16, None),
        ([0.0], 0.2, 40, 0),
        ([], 0.3, 100, None),
    ],
)
def test_a_collapse_by_hand(success, start, n_tasks, place):
    assert first_collapse(success, start, n_tasks) == place


def test_of_the_published_references_none_collapses_in_the_mean_of_its_seeds(project):
    for path in sorted((project / "docs/tables").glob("*/rounds.csv")):
        table = pd.read_csv(path).query("panel == 'test'")
        start = table.loc[table["method"] == "SFTOnly", "success"].iloc[0]
        runs = table[table["method"] == "flatGRPO"].sort_values("round")["success"]
        assert first_collapse(runs.tolist(), start, 500) is None, path


def rows(dead, success=0.1, groups=50, inadmissible=0):
    """Two steps of a round."""
    half = {"n_groups": groups, "success_rate": success, "n_turns": 100}
    half["inadmissible"] = inadmissible
    return [half | {"dead_groups": dead - dead // 2}, half | {"dead_groups": dead // 2}]


def test_most_groups_dead_is_said_with_what_to_change():
    line = dead_caution("flatGRPO seed 11", 1, rows(72))
    assert line.startswith(
        "Most groups are dead: in round 1, 72 % of the groups of flatGRPO seed 11 had"
    )
    assert ". 10 % of the games were won. " in line
    assert "training.rollouts_per_task, a lower training.temperature" in line
    assert line.endswith("or easier games.")
    assert dead_caution("flatGRPO", 1, rows(67)) and not dead_caution("flatGRPO", 1, rows(66))
    assert dead_caution("flatGRPO", 1, []) == ""


def test_groups_that_training_has_solved_are_no_caution():
    assert dead_caution("flatGRPO", 1, rows(90, success=0.95)).endswith(" harder games.")
    assert dead_caution("flatGRPO", 4, rows(95, success=0.97)) == ""
    assert dead_caution("flatGRPO", 4, rows(95, success=0.0)) != ""


def test_refused_actions_are_named_where_they_are_most():
    line = dead_caution("flatGRPO", 1, rows(90, inadmissible=51))
    assert "% of the games were won and 51 % of the actions refused. Try" in line
    assert "refused" not in dead_caution("flatGRPO", 1, rows(90, inadmissible=50))
