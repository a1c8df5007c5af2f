"""A base out of the user's own folder: what beside its weights changes, changes the model."""

import json

import pytest
import yaml
from test_invalidation import MERGED, SFT

from hgrpo.base_model.digest import companions_digest

BASE = {"Base model"}
PLAYED = SFT | {
    "flatGRPO, seed 11: round 1",
    "flatGRPO, seed 11: evaluation of round 1",
}
STUDY = ("study=mine",)


@pytest.fixture(scope="module")
def ended(finished, tmp_path_factory):
    """A checkout with a user's folder of a model, and a finished study of it."""
    checkout = finished.copy(tmp_path_factory.mktemp("model") / "checkout")
    made = checkout.root / "models/mine"
    made.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        # The stub of the stage writes this text too, because it copies nothing.
        (made / name).write_text(f"base results/mine/base {name}\n", encoding="utf-8")
    (made / "model.safetensors").write_text("weights", encoding="utf-8")
    configs = checkout.root / "configs"
    model = {"name": "mine", "path": "$MODELS/mine", "adapt": "full"}
    (configs / "models/mine.yaml").write_text(yaml.safe_dump(model), encoding="utf-8")
    study = yaml.safe_load((configs / "studies/grid.yaml").read_bytes())
    study |= {"name": "mine", "model": "mine", "methods": ["SFTOnly", "flatGRPO"]}
    study |= {"seeds": [11], "rounds": 1}
    (configs / "studies/mine.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODELS", str(made.parent))
        done = checkout.snakemake("results/mine/base/summary.json", *STUDY)
        assert done.returncode == 0, done.stdout + done.stderr
        # The stub of the stage copies no model; the real one records what it adopted.
        adopted = {"digest": "", "companions": companions_digest(made), "bytes": 7}
        (checkout.root / "results/mine/base/summary.json").write_text(
            json.dumps(adopted), encoding="utf-8"
        )
        done = checkout.snakemake(*STUDY)
        assert done.returncode == 0, done.stdout + done.stderr
        assert checkout.planned(*STUDY) == set()
    return checkout


@pytest.fixture
def finished_study(ended, tmp_path, monkeypatch):
    copy = ended.copy(tmp_path / "checkout")
    monkeypatch.setenv("MODELS", str(copy.root / "models"))
    return copy


@pytest.fixture
def folder(finished_study):
    return finished_study.root / "models/mine"


def test_an_edit_beside_the_weights_takes_the_model_over_again(finished_study, folder):
    (folder / "README.md").write_text("nothing that a stage reads", encoding="utf-8")
    assert finished_study.planned(*STUDY) == set()
    (folder / "chat_template.jinja").write_text("another", encoding="utf-8")
    assert finished_study.planned(*STUDY) == BASE | PLAYED | MERGED


def test_a_variable_that_leads_to_another_model_is_seen(finished_study, folder, monkeypatch):
    (other := folder.parent.parent / "others/mine").mkdir(parents=True)
    (other / "config.json").write_text("another", encoding="utf-8")
    (other / "model.safetensors").write_text("other weights", encoding="utf-8")
    monkeypatch.setenv("MODELS", str(other.parent))
    assert finished_study.planned(*STUDY) >= BASE | PLAYED


def test_without_the_model_finished_results_stay(finished_study, folder, monkeypatch):
    (folder / "model.safetensors").unlink()
    (folder / "tokenizer.json").write_text("of a model that is half away", encoding="utf-8")
    assert finished_study.planned(*STUDY) == set()
    monkeypatch.delenv("MODELS")
    assert finished_study.planned(*STUDY) == set()


def test_a_base_with_other_files_beside_its_weights_is_another_model(finished_study):
    summary = finished_study.root / "results/mine/base/summary.json"
    summary.write_text(json.dumps({"digest": "another"}), encoding="utf-8")
    assert finished_study.planned(*STUDY) == PLAYED | MERGED
