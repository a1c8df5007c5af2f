"""What a study asks of a machine, and what it reads from outside."""

import shutil
from pathlib import Path

import pytest
import yaml
from places import PROJECT

from hgrpo.errors import UserError
from hgrpo.stages.order import resources_key
from hgrpo.study.study import load_study

CONFIGS = PROJECT / "configs"


def study_with(tmp_path: Path, name: str = "bakeoff", **changes):
    """A shipped study with some keys changed."""
    configs = Path(shutil.copytree(CONFIGS, tmp_path / "configs"))
    path = configs / f"studies/{name}.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_bytes()) | changes), encoding="utf-8")
    return load_study(path)


def test_a_key_that_is_not_given_keeps_the_stages_default(tmp_path):
    resources = study_with(tmp_path, resources={"sft": {"gpu": 1}}).config.resources
    assert (resources.sft.gpu, resources.sft.mem_mb, resources.sft.threads) == (1, 2500, 2)
    assert (resources.rl_round.gpu, resources.rl_round.mem_mb) == (0, 1700)


def test_a_tiny_model_asks_for_no_gpu():
    for path in (CONFIGS / "studies").glob("*.yaml"):
        study = load_study(path)
        resources = study.config.resources.model_dump()
        asking = {stage for stage, needs in resources.items() if needs["gpu"]}
        measured = {"gradients_round"} if study.config.gradients else set()
        assert asking in (set(), {"sft", "rl_round", "evaluate"} | measured)
        assert not (asking and study.model.tiny)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"sft": {"gpu": -1}}, "resources.sft.gpu"),
        ({"sft": {"gpus": 1}}, "resources.sft.gpus: unknown key; did you mean 'gpu'"),
        ({"stf": {"gpu": 1}}, "resources.stf: unknown key; did you mean 'sft'"),
    ],
)
def test_a_mistake_names_its_key(tmp_path, resources, expected):
    with pytest.raises(UserError) as caught:
        study_with(tmp_path, resources=resources)
    assert expected in str(caught.value)


def test_stages_that_share_resources_take_those_of_the_stage_they_name(tmp_path):
    resources = study_with(tmp_path, resources={"report": {"mem_mb": 3000}}).config.resources
    assert resources_key("merge") == resources_key("figures") == "report"
    assert resources.of(resources_key("merge")).mem_mb == 3000
    assert resources.of("study_config").mem_mb == 1000
