"""An SFT policy that somebody trained elsewhere is taken only where it belongs."""

import json
import shutil

import pytest
from tiny_policy import make_policy

from hgrpo.base_model.digest import write_summary
from hgrpo.errors import UserError
from hgrpo.policy.compatible import weights_digest
from hgrpo.policy.given_adapter import summary_digest, take_adapter, trained_on


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A policy, its base, and the folder of its SFT stage."""
    root = tmp_path_factory.mktemp("given")
    policy = make_policy(root / "base", adapt="lora")
    write_summary(root / "base", 300)
    policy.save_adapter(root / "sft/adapter")
    summary = {
        "trained_on": trained_on(root / "base", "alfworld"),
        "weights": weights_digest(root / "sft/adapter"),
    }
    (root / "sft/summary.json").write_text(json.dumps(summary))
    return policy, root


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made[1] / "sft", tmp_path / "sft")


def change(folder, **entries):
    path = folder / "summary.json"
    summary = json.loads(path.read_text())
    summary["trained_on"] |= entries
    path.write_text(json.dumps(summary))


def test_the_files_are_copied_and_their_hash_returned(made, folder, tmp_path):
    policy, root = made
    hashed = take_adapter(folder, policy.config, root / "base", "alfworld", tmp_path / "out")
    assert hashed == weights_digest(folder / "adapter")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"env": "webshop"},
            "trained_on.env: 'webshop', but the study's environment is 'alfworld'",
        ),
        (
            {"tokenizer": "0" * 16},
            "trained_on.tokenizer: '0000000000000000', but the study's token",
        ),
        ({"base": "0" * 16}, "trained_on.base: '0000000000000000', but the study's base model is"),
    ],
)
def test_another_origin_is_named(made, folder, tmp_path, entry, said):
    policy, root = made
    change(folder, **entry)
    with pytest.raises(UserError) as refused:
        take_adapter(folder, policy.config, root / "base", "alfworld", tmp_path / "out")
    assert str(refused.value).startswith(f"{folder}/summary.json: {said}")
    assert not (tmp_path / "out").exists()


def test_an_edited_folder_is_noticed(made, folder, tmp_path):
    policy, root = made
    before = summary_digest(folder)
    path = folder / "summary.json"
    path.write_text(path.read_text().replace('"weights": "', '"weights": "f'))
    assert summary_digest(folder) != before
    with pytest.raises(UserError, match="its weights have the hash"):
        take_adapter(folder, policy.config, root / "base", "alfworld", tmp_path / "out")


@pytest.mark.parametrize("text", [None, "{", "{}", '{"trained_on": 1}'])
def test_a_folder_that_is_none_of_the_stage_is_named(made, folder, tmp_path, text):
    policy, root = made
    path = folder / "summary.json"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(UserError, match=r"summary\.json: (missing; sft.adapter names|it does not)"):
        take_adapter(folder, policy.config, root / "base", "alfworld", tmp_path / "out")


def test_another_rank_is_named(made, folder, tmp_path):
    policy, root = made
    lora = policy.config.lora.model_copy(update={"rank": 8})
    other = policy.config.model_copy(update={"lora": lora})
    with pytest.raises(UserError, match="r: 4, but lora.rank of the model is 8"):
        take_adapter(folder, other, root / "base", "alfworld", tmp_path / "out")
