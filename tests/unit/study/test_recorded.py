"""A study read back from the config.yaml of its results."""

import re

import pytest
import yaml

from hgrpo.errors import UserError
from hgrpo.study.recorded import recorded_study
from hgrpo.study.study import load_study


@pytest.mark.parametrize("name", ["smoke", "alfworld_qwen", "interventions"])
def test_a_study_comes_back_whole(project, tmp_path, name):
    study = load_study(project / f"configs/studies/{name}.yaml")
    written = study.resolved() | {"provenance": {"packages": {}}}
    (tmp_path / "config.yaml").write_text(
        yaml.safe_dump(written, sort_keys=False), encoding="utf-8"
    )
    again = recorded_study(tmp_path)
    assert again.resolved() == study.resolved()
    assert list(again.methods) == list(study.methods)


def test_no_file(tmp_path):
    with pytest.raises(UserError, match="no such file; run the study first"):
        recorded_study(tmp_path)


@pytest.mark.parametrize("content", ["rounds: 3\n", "methods: {A: {train: 1}}\n"])
def test_another_file_is_named(tmp_path, content):
    (tmp_path / "config.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"config\.yaml: the file is not a resolved study"):
        recorded_study(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds: input should be greater than or equal to 1, not 0"),
        ({"env": {"name": "mars"}}, "env: name: unknown environment 'mars'"),
    ],
)
def test_a_mistake_is_named_with_its_key(project, tmp_path, change, message):
    written = load_study(project / "configs/studies/smoke.yaml").resolved() | change
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(f"{tmp_path / 'config.yaml'}: {message}")):
        recorded_study(tmp_path)
