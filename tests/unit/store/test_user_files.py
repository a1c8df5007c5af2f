"""The user's games and models are part of the keys of what is made from them."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from places import PROJECT
from stored_study import changed, finish, keys, small_plan

from hgrpo.base_model.digest import companions_digest
from hgrpo.games.kinds import load
from hgrpo.store.entry import link, read_made

SHORT = {"methods": "SFTOnly,flatGRPO", "rounds": "1"}


@pytest.fixture
def mine(here, monkeypatch):
    """A function that plans a study of the user's own games and model."""
    for split in ("train", "valid_seen", "valid_unseen"):
        (here / "games" / split / "g1").mkdir(parents=True)
        (here / "games" / split / "g1/game.tw-pddl").write_text("{}", encoding="utf-8")
    (here / "models/mine").mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        (here / "models/mine" / name).write_text("{}", encoding="utf-8")
    monkeypatch.setenv("GAMES", str(here / "games"))
    monkeypatch.setenv("MODELS", str(here / "models"))
    configs = Path(shutil.copytree(PROJECT / "configs", here / "configs"))
    env = yaml.safe_load((configs / "envs/alfworld-official.yaml").read_bytes())
    env["games"] = {"folder": "$GAMES"}
    model = {"name": "mine", "path": "$MODELS/mine", "adapt": "full"}
    study = yaml.safe_load((configs / "studies/alfworld_qwen.yaml").read_bytes())
    study |= {"name": "mine", "env": "mine", "model": "mine"}
    study["evaluation"] |= {"validation_games": 1, "test_games": 1}
    for kind, content in (("envs", env), ("models", model), ("studies", study)):
        (configs / f"{kind}/mine.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return lambda: small_plan("mine", configs, **SHORT)


def finish_with_records(plan) -> None:
    """Finish a study whose stages record the digests of the user's files, as they do."""
    finish(plan)
    link(Path(plan.root), (read_made(planned.entry) for planned in plan.jobs()))
    game = load(plan.study.env.name)
    digest = game.user_files_digest(plan.study.env, "assets")
    Path(plan.root, "assets/manifest.json").write_text(
        json.dumps({"user_files": digest}), encoding="utf-8"
    )
    digest = game.user_files_digest(plan.study.env, "expert")
    Path(plan.root, "expert/summary.json").write_text(
        json.dumps({"user_files": digest}), encoding="utf-8"
    )
    adopted = {"digest": "", "companions": companions_digest(Path("models/mine")), "bytes": 2}
    Path(plan.root, "base/summary.json").write_text(json.dumps(adopted), encoding="utf-8")


def test_another_game_makes_everything_anew_and_the_old_one_brings_the_results_back(mine, here):
    before, game = mine(), here / "games/train/g1/game.tw-pddl"
    assert keys(before) == keys(mine())
    game.write_text('{"a": 1}', encoding="utf-8")
    assert {"assets", "expert", "sft", "merge"} <= changed(before, mine())
    assert "study_config" not in changed(before, mine())
    game.write_text("{}", encoding="utf-8")
    assert keys(mine()) == keys(before)
    (here / "games/train/g2").mkdir()
    (here / "games/train/g2/game.tw-pddl").write_text("{}", encoding="utf-8")
    assert {"assets", "expert", "sft"} <= changed(before, mine())


def test_another_folder_with_the_same_games_changes_nothing(mine, here, tmp_path, monkeypatch):
    before = keys(mine())
    shutil.copytree(here / "games", tmp_path / "moved")
    monkeypatch.setenv("GAMES", str(tmp_path / "moved"))
    assert keys(mine()) == before


def test_what_lies_beside_a_models_weights_counts_if_a_stage_reads_it(mine, here):
    before = mine()
    keys(before)
    (here / "models/mine/README.md").write_text("nothing that a stage reads", encoding="utf-8")
    assert changed(before, mine()) == set()
    (here / "models/mine/chat_template.jinja").write_text("another", encoding="utf-8")
    after = changed(before, mine())
    assert {"base", "sft", "rl_round flatGRPO 11 1"} <= after
    assert not {"assets", "expert", "study_config"} & after


def test_a_variable_that_leads_to_another_model_is_noticed(mine, tmp_path, monkeypatch):
    before = mine()
    keys(before)
    other = tmp_path / "others/mine"
    other.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (other / name).write_text("another", encoding="utf-8")
    monkeypatch.setenv("MODELS", str(other.parent))
    assert {"base", "sft"} <= changed(before, mine())


def test_finished_results_stay_where_the_users_files_are_gone(mine, here, monkeypatch):
    plan = mine()
    finish_with_records(plan)
    before = keys(mine())
    shutil.rmtree(here / "games")
    (here / "models/mine/model.safetensors").unlink()
    assert keys(mine()) == before
    for name in ("GAMES", "MODELS"):
        monkeypatch.delenv(name)
    assert keys(mine()) == before
