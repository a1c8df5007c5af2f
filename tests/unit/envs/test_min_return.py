"""`expert.min_return`: every scripted expert's poor trajectories are left out, and counted.

People's trajectories are in webshop/test_webshop_recorded.py.
"""

import json

import pyarrow.parquet as pq
import pytest
from stage_settings import run_stage

from hgrpo.envs.kinds import load
from hgrpo.errors import UserError
from hgrpo.stages.expert import success

ALFWORLD = {
    "name": "alfworld",
    "games": {"generate": {"receptacles": [6, 8], "objects": [4, 6]}},
    "panels": {"train": 12, "validation": 6, "test": 6},
    "expert": {"trajectories": 60, "turn_cap": 8},
}
WEBSHOP = {
    "name": "webshop",
    "products": {"generate": {"products": 120}},
    "panels": {"test": 20, "validation": 10, "train": 40},
    "expert": {"trajectories": 60},
}
CHORES = {
    "name": "chores",
    "turn_cap": 8,
    "chores": 8,
    "kinds": 20,
    "verdict": "graded",
    "panels": {"train": 20, "validation": 5, "test": 5},
    "expert": {"trajectories": 60, "turn_cap": 8},
}
# Expert -> the environment with the expert's settings, and a return that some trajectories miss.
EXPERTS = {
    "alfworld searcher": (ALFWORLD, {}, 0.5),
    "alfworld searcher and walkthroughs": (ALFWORLD, {"walkthrough_share": 0.5}, 0.5),
    "webshop reader": (WEBSHOP, {"knows": "instruction"}, 0.9),
    "webshop oracle": (WEBSHOP, {"knows": "product", "turn_cap": 4}, 0.5),
    "chores": (CHORES, {}, 0.6),
}


@pytest.fixture(scope="module")
def assets(tmp_path_factory):
    """The folder of an environment's assets, made once."""
    made = {}

    def of(config):
        if config["name"] not in made:
            made[config["name"]] = tmp_path_factory.mktemp(config["name"]) / "assets"
            run("assets", config, made[config["name"]])
        return made[config["name"]]

    return of


def run(stage, config, out, *more):
    run_stage(stage, "--config", json.dumps(config), "--seed", 5, "--out", out, *more)


def demonstrated(config, assets, out, **expert) -> tuple[list[dict], dict]:
    """Rows and summary of the expert stage."""
    settings = config | {"expert": config["expert"] | expert}
    run("expert", settings, out, "--assets", assets)
    rows = pq.read_table(out / "trajectories.parquet").to_pylist()
    return rows, json.loads((out / "summary.json").read_bytes())


@pytest.mark.parametrize("name", EXPERTS)
def test_what_returns_less_is_left_out_and_counted(assets, tmp_path, name):
    config, expert, least = EXPERTS[name]
    folder = assets(config)
    rows, whole = demonstrated(config, folder, tmp_path / "all", **expert)
    assert len(rows) == whole["trajectories"] == 60 and whole["skipped"] == {}
    kept, summary = demonstrated(config, folder, tmp_path / "kept", min_return=least, **expert)
    assert kept == [row for row in rows if row["score"] >= least]
    assert 0 < len(kept) < 60
    assert summary["trajectories"] == len(kept)
    assert summary["skipped"] == {"return below expert.min_return": 60 - len(kept)}
    assert summary["success"]["all"]["score"] >= least


def test_an_expert_of_whom_nothing_is_left_is_named(assets, tmp_path):
    with pytest.raises(
        UserError, match=r"no trajectory could be made: .*return below expert\.min_return'?: 60"
    ):
        demonstrated(CHORES, assets(CHORES), tmp_path / "out", min_return=1.01)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", ["much", float("nan")])
def test_a_return_that_is_none_is_named(tmp_path, value):
    config = CHORES | {"expert": CHORES["expert"] | {"min_return": value}}
    with pytest.raises(UserError, match=r"expert\.min_return: "):
        run("expert", config, tmp_path / "out", "--assets", tmp_path)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), None, "1"])
def test_a_score_of_an_expert_that_is_not_finite_is_named(score):
    row = {"task_id": "door-3", "task_type": "door", "success": True, "n_turns": 2, "score": score}
    with pytest.raises(UserError, match="task door-3: score is .*; a finite number of float32"):
        success([row], 5)


@pytest.mark.parametrize(
    ("panel", "changes", "message"),
    [
        ("test", {}, "the panel train has no task with its id and content_hash"),
        ("validation", {}, "the panel train has no task with its id and content_hash"),
        ("train", {"content_hash": "0"}, "the panel train has no task with its id and content_"),
        ("train", {"n_turns": 99}, "n_turns is 99, with 8 actions and 9 observations"),
        ("train", {"actions": ["wait"] * 7 + [" "]}, "an action is empty, or no text"),
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
        demonstrated(CHORES, assets(CHORES), tmp_path / "out")
    assert not (tmp_path / "out").exists()
