"""The expert stage: `expert.min_return`, and checks of demonstrations.

People's trajectories are in webshop/test_webshop_recorded.py.
"""

import json

import pyarrow.parquet as pq
import pytest
from stage_settings import run_stage

from hgrpo.errors import UserError
from hgrpo.games.kinds import load
from hgrpo.stages.expert import success

CHORES = {
    "name": "chores",
    "turn_cap": 8,
    "chores": 8,
    "kinds": 20,
    "verdict": "graded",
    "panels": {"train": 20, "validation": 5, "test": 5},
    "expert": {"trajectories": 60, "turn_cap": 8},
}


@pytest.fixture(scope="module")
def assets(tmp_path_factory):
    """The folder of the assets, made once."""
    folder = tmp_path_factory.mktemp("chores") / "assets"
    run("assets", CHORES, folder)
    return folder


def run(stage, config, out, *more):
    run_stage(stage, "--config", json.dumps(config), "--seed", 5, "--out", out, *more)


def demonstrated(config, assets, out, **expert) -> tuple[list[dict], dict]:
    """Rows and summary of the expert stage."""
    settings = config | {"expert": config["expert"] | expert}
    run("expert", settings, out, "--assets", assets)
    rows = pq.read_table(out / "trajectories.parquet").to_pylist()
    return rows, json.loads((out / "summary.json").read_bytes())


def test_poor_trajectories_are_left_out_and_counted(assets, tmp_path):
    rows, whole = demonstrated(CHORES, assets, tmp_path / "all")
    assert len(rows) == whole["trajectories"] == 60 and whole["skipped"] == {}
    good, summary = demonstrated(CHORES, assets, tmp_path / "good", min_return=0.6)
    assert good == [row for row in rows if row["score"] >= 0.6]
    assert 0 < len(good) < 60
    assert summary["trajectories"] == len(good)
    assert summary["skipped"] == {"return below expert.min_return": 60 - len(good)}
    assert summary["success"]["all"]["score"] >= 0.6


def test_an_expert_of_whom_nothing_is_left_is_named(assets, tmp_path):
    with pytest.raises(
        UserError, match=r"no demonstration was collected: .*return below expert\.min_return'?: 60"
    ):
        demonstrated(CHORES, assets, tmp_path / "out", min_return=1.01)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("score", [float("inf"), "1"])
def test_a_score_of_an_expert_that_is_not_finite_is_named(score):
    row = {"task_id": "door-3", "task_type": "door", "success": True, "n_turns": 2, "score": score}
    with pytest.raises(UserError, match="task door-3: score is .*; it must be a finite float32"):
        success([row], 5)


@pytest.mark.parametrize(
    ("panel", "changes", "message"),
    [
        ("test", {}, "the panel `train` has no task with this id and content_hash"),
        ("train", {"content_hash": "0"}, "the panel `train` has no task with this id and content_"),
        ("train", {"n_turns": 99}, "n_turns is 99, with 8 actions and 9 observations"),
        ("train", {"actions": ["wait"] * 7 + [" "]}, "an action is empty or not a string"),
    ],
)
def test_a_demonstration_of_a_held_out_game_or_with_wrong_columns_is_refused(
    assets, tmp_path, monkeypatch, panel, changes, message
):
    environment = load("chores")
    demonstrate = environment.demonstrate

    def wrong(env, tasks, panels, seed, skipped):
        for row in demonstrate(env, tasks, panels | {"train": panels[panel]}, seed, skipped):
            yield row | changes

    monkeypatch.setattr(environment, "demonstrate", wrong)
    with pytest.raises(UserError, match=rf"^demonstration of task {panel}-\d+: {message}"):
        demonstrated(CHORES, assets, tmp_path / "out")
    assert not (tmp_path / "out").exists()
