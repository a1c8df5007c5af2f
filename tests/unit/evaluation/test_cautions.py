"""When a study is warned about, by hand and on the published studies."""

import json

import evidence
import pandas as pd
import pytest

from hgrpo.evaluation.cautions import far_from_expert, first_collapse, poor_expert


def test_an_sft_policy_far_below_its_expert():
    said = far_from_expert((0.017, 0.017), (0.7, 0.7))
    assert said.startswith(
        "The SFT policy is far below its expert: played greedily, it solves 1.7 % of "
    )
    assert "the expert 70.0 %" in said and "sft.epochs" in said
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
