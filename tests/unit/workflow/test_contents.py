"""What the key of Snakemake's cache knows of the user's own files."""

from dataclasses import replace

import pytest
from places import PROJECT

from hgrpo.errors import UserError
from hgrpo.study.study import load_study
from hgrpo.workflow.rules import StudyRules


def study(name, **model):
    found = load_study(PROJECT / f"configs/studies/{name}.yaml")
    changed = found.model.model_copy(update={"tiny": None} | model) if model else found.model
    return replace(found, model=changed)


def contents(of, stage):
    return StudyRules(of, "results/x").contents(stage)({}, {})


@pytest.mark.parametrize("name", ["bakeoff", "webshop"])
def test_generated_worlds_and_models_have_none(name):
    assert {contents(study(name), stage) for stage in ("assets", "expert", "base")} == {None}


def test_config_tokenizer_and_weights_of_a_model_count(tmp_path):
    for name in ("config.json", "tokenizer.json", "model.safetensors", "README.md"):
        (tmp_path / name).write_text("one", encoding="utf-8")
    digests = [contents(study("bakeoff", path=str(tmp_path)), "base")]
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("two", encoding="utf-8")
        digests.append(contents(study("bakeoff", path=str(tmp_path)), "base"))
    assert len(set(digests)) == 4
    (tmp_path / "README.md").write_text("two", encoding="utf-8")
    assert contents(study("bakeoff", path=str(tmp_path)), "base") == digests[-1]


def test_a_wheel_of_the_users_counts(tmp_path):
    wheel = tmp_path / "some.whl"
    wheel.write_text("one", encoding="utf-8")
    package = study("smollm2").model.package.model_copy(update={"wheel": str(wheel)})
    before = contents(study("smollm2", package=package), "base")
    wheel.write_text("two", encoding="utf-8")
    assert before != contents(study("smollm2", package=package), "base") is not None
    assert contents(study("smollm2"), "base") is None


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("$NOWHERE/model", "model tiny: path: $NOWHERE/model: the environment variable is not set"),
        ("/nowhere/model", "model tiny: path: /nowhere/model: there are no weights"),
    ],
)
def test_a_model_that_is_not_there_is_named(monkeypatch, path, said):
    monkeypatch.delenv("NOWHERE", raising=False)
    with pytest.raises(UserError) as refused:
        contents(study("bakeoff", path=path), "base")
    assert str(refused.value).startswith(said)
