"""What a study asks of a machine, and what it reads from outside."""

import shutil
from pathlib import Path

import pytest
import yaml
from hgrpo.workflow.user_files import outside_files
from places import PROJECT

from hgrpo.errors import UserError
from hgrpo.study.study import load_study

CONFIGS = PROJECT / "configs"


def study_with(tmp_path: Path, name: str = "bakeoff", **changes):
    """A shipped study with some keys changed."""
    configs = Path(shutil.copytree(CONFIGS, tmp_path / "configs"))
    path = configs / f"studies/{name}.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))
    return load_study(path)


def test_a_key_that_is_not_given_keeps_the_stages_default(tmp_path):
    resources = study_with(tmp_path, resources={"sft": {"gpu": 1}}).config.resources
    assert (resources.sft.gpu, resources.sft.mem_mb, resources.sft.threads) == (1, 2500, 1)
    assert (resources.rl_round.gpu, resources.rl_round.mem_mb) == (0, 1700)


def test_a_tiny_model_asks_for_no_gpu():
    for path in (CONFIGS / "studies").glob("*.yaml"):
        study = load_study(path)
        resources = study.config.resources.model_dump()
        asking = {stage for stage, needs in resources.items() if needs["gpu"]}
        assert asking in (set(), {"sft", "rl_round", "evaluate"})
        assert not (asking and study.model.tiny)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"sft": {"gpu": -1}}, "resources.sft.gpu"),
        ({"sft": {"gpus": 1}}, "resources.sft.gpus: unknown key; did you mean 'gpu'"),
        ({"stf": {"gpu": 1}}, "resources.stf: unknown key; did you mean 'sft'"),
        ({"sft": 3}, "resources.sft"),
        ([1], "resources"),
    ],
)
def test_a_mistake_names_its_key(tmp_path, resources, expected):
    with pytest.raises(UserError) as caught:
        study_with(tmp_path, resources=resources)
    assert expected in str(caught.value)


def test_generated_worlds_and_models_read_nothing_from_outside():
    for name in ("bakeoff", "webshop"):
        assert outside_files(load_study(CONFIGS / f"studies/{name}.yaml")) == []


def test_the_users_own_files_are_named(tmp_path):
    study = study_with(
        tmp_path,
        env="alfworld-official",
        evaluation={"validation_games": 140, "test_games": 134},
    )
    assert outside_files(study) == ["env alfworld-official: games.folder"]
    folder = study.model.model_copy(update={"tiny": None, "path": "somewhere"})
    changed = type(study)(study.config, study.env, folder, study.methods, study.training)
    assert outside_files(changed)[-1] == "model tiny: path"
