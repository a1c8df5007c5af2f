"""Sizes of panels from a folder are checked against the evaluation."""

import pytest
import yaml
from stage_settings import stage_settings

from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.stages.assets import Settings, check_sizes
from hgrpo.study.study import load_study


def panels(**sizes):
    return {
        split: [Task(f"{split}{i}", "p", f"{split}{i}", "x") for i in range(size)]
        for split, size in sizes.items()
    }


def official(project, tmp_path, **evaluation):
    """A study of the official games, in a copy of the configs' folder."""
    for part in ("envs", "methods", "models"):
        (tmp_path / part).symlink_to(project / "configs" / part)
    (tmp_path / "studies").mkdir()
    path = tmp_path / "studies/mine.yaml"
    names = {"name": "mine", "env": "alfworld-official", "model": "tiny", "methods": ["flatGRPO"]}
    path.write_text(yaml.safe_dump(names | {"evaluation": evaluation}), encoding="utf-8")
    return load_study(path)


def settings_of(study):
    return Settings.model_validate(stage_settings(study, "assets"))


def test_the_official_games_are_too_few_for_the_defaults(project, tmp_path):
    settings = settings_of(official(project, tmp_path))
    with pytest.raises(UserError) as caught:
        check_sizes(panels(train=3, validation=140, test=134), settings)
    assert str(caught.value) == (
        "configs/studies/mine.yaml: evaluation.validation_games: 200 games requested, but the "
        "validation panel has 140"
    )


def test_as_many_as_there_are_will_do(project, tmp_path):
    settings = settings_of(official(project, tmp_path, validation_games=140, test_games=134))
    check_sizes(panels(train=3, validation=140, test=134), settings)
    with pytest.raises(UserError, match=r"evaluation.test_games: 134 .* test panel has 133"):
        check_sizes(panels(train=3, validation=140, test=133), settings)
