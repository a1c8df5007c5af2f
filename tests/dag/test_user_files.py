"""Games in a user's own folder: the study notices when they change."""

import json
import shutil

import pytest
import yaml

from hgrpo.envs.kinds import environment_settings
from hgrpo.envs.user_files import user_files_digest

STUDY = ("study=mine", "results/mine/expert/summary.json")
DATA = {"Games and panels", "Expert trajectories"}


@pytest.fixture
def games(checkout, monkeypatch):
    """The user's folder, and a finished study of its games in `checkout`."""
    folder = checkout.root / "games"
    for split in ("train", "valid_seen", "valid_unseen"):
        (folder / split / "g1").mkdir(parents=True)
        (folder / split / "g1/game.tw-pddl").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("GAMES", str(folder))
    configs = checkout.root / "configs"
    env = yaml.safe_load((configs / "envs/alfworld-official.yaml").read_bytes())
    env |= {"games": {"folder": "$GAMES"}}
    (configs / "envs/mine.yaml").write_text(yaml.safe_dump(env), encoding="utf-8")
    study = yaml.safe_load((configs / "studies/grid.yaml").read_bytes())
    (configs / "studies/mine.yaml").write_text(
        yaml.safe_dump(study | {"name": "mine", "env": "mine"}), encoding="utf-8"
    )
    done = checkout.snakemake(*STUDY)
    assert done.returncode == 0, done.stdout + done.stderr
    # The stub records nothing; the stage records the digest of what it read.
    digest = user_files_digest(environment_settings(env, "env"), "assets")
    manifest = checkout.root / "results/mine/assets/manifest.json"
    manifest.write_text(json.dumps({"user_files": digest}), encoding="utf-8")
    assert checkout.planned(*STUDY) == set()
    return folder


def test_another_game_or_size_makes_the_assets_anew(checkout, games):
    (games / "train/g1/game.tw-pddl").write_text('{"a": 1}', encoding="utf-8")
    assert checkout.planned(*STUDY) == DATA
    (games / "train/g1/game.tw-pddl").write_text("{}", encoding="utf-8")
    assert checkout.planned(*STUDY) == set()
    (games / "train/g2").mkdir()
    (games / "train/g2/game.tw-pddl").write_text("{}", encoding="utf-8")
    assert checkout.planned(*STUDY) == DATA


def test_results_can_be_read_where_the_games_are_gone(checkout, games, monkeypatch):
    shutil.rmtree(games)
    assert checkout.planned(*STUDY) == set()
    monkeypatch.delenv("GAMES")
    assert checkout.planned(*STUDY) == set()
