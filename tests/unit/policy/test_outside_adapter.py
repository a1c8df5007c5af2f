"""An SFT policy that somebody trained elsewhere is taken only where it belongs."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_policy import make_policy

from hgrpo.base_model.digest import write_summary
from hgrpo.errors import UserError
from hgrpo.policy.compatible import weights_digest
from hgrpo.policy.load import load_policy
from hgrpo.policy.outside_adapter import adapter_digest, take_adapter, trained_on


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
    (root / "sft/summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return policy, root


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made[1] / "sft", tmp_path / "sft")


@pytest.fixture
def take(made, folder, tmp_path):
    """Takes the adapter in the folder, or says why not, in one line; then `out` is not there."""
    policy, root = made

    def call(path=folder, **changes):
        model = policy.config.model_copy(update=changes)
        try:
            return take_adapter(path, model, root / "base", "alfworld", tmp_path / "out")
        except UserError as error:
            assert "\n" not in str(error) and not (tmp_path / "out").exists()
            return str(error)

    return call


def edit(path, **entries):
    """Change keys of a JSON file; None removes a key."""
    changed = json.loads(path.read_bytes()) | entries
    path.write_text(
        json.dumps({key: value for key, value in changed.items() if value is not None}),
        encoding="utf-8",
    )


def test_the_files_are_copied_and_their_hash_returned(folder, take, tmp_path):
    assert take() == weights_digest(folder / "adapter")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]


@pytest.mark.parametrize(
    ("key", "value"), [("env", "webshop"), ("tokenizer", "0" * 16), ("base", "0" * 16)]
)
def test_another_origin_is_named(made, folder, take, key, value):
    origin = trained_on(made[1] / "base", "alfworld") | {key: value}
    edit(folder / "summary.json", trained_on=origin)
    assert take().startswith(f"{folder}/summary.json: trained_on.{key}: {value!r}, but the study")


def test_an_edited_folder_is_noticed(folder, take):
    before = adapter_digest(folder)
    edit(folder / "summary.json", weights="f" * 16)
    assert adapter_digest(folder) != before
    assert "the weights have hash" in take()


@pytest.mark.parametrize("text", ["{", "{}", '{"trained_on": 1}', "\ud800"])
def test_a_summary_of_another_kind_is_named(folder, take, text):
    (folder / "summary.json").write_bytes(text.encode(errors="surrogatepass"))
    assert take().startswith(f"{folder}/summary.json: trained_on: expected a mapping (")


def test_a_path_that_is_no_folder_of_the_stage_is_named(take, tmp_path):
    path = tmp_path / "none"
    assert take(path).startswith(f"sft.adapter: {path}/summary.json: No such file or directory; ")


def test_another_rank_is_named(made, take):
    lora = made[0].config.lora.model_copy(update={"rank": 8})
    assert "r: 4, but the study's model has `lora.rank`: 8" in take(lora=lora)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peft_type": "IA3"}, "peft_type: 'IA3'; only LORA is supported"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save: ['lm_head']; only plain LoRA"),
        ({"auto_map": {"x": "y"}}, "auto_map: models with custom code"),
    ],
)
def test_an_adapter_of_another_kind_is_named(folder, take, changes, message):
    path = folder / "adapter/adapter_config.json"
    edit(path, **changes)
    assert take().startswith(f"{path}: {message}")


def change_weights(folder, change):
    """Change the first tensor; the summary then records no hash, as one written by hand."""
    edit(folder / "summary.json", weights=None)
    path = folder / "adapter/adapter_model.safetensors"
    tensors = load_file(path)
    name = sorted(tensors)[0]
    tensors |= change(name, tensors[name])
    save_file({each: tensor for each, tensor in tensors.items() if tensor is not None}, path)
    return path, name


MORE = "base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda name, tensor: {name: None}, "'{}' is missing; the base requires [4, 32]"),
        (lambda name, tensor: {name: torch.zeros(8, 32)}, "'{}' has shape [8, 32]; the base"),
        (lambda name, tensor: {name: tensor * float("nan")}, "'{}' has non-finite values"),
        (lambda name, tensor: {MORE: torch.zeros(4, 32)}, f"'{MORE}' does not belong to a module"),
    ],
)
def test_weights_that_do_not_fit_the_base_are_named(folder, take, change, message):
    path, name = change_weights(folder, change)
    assert take().startswith(f"{path}: tensor {message.format(name)}")


def test_a_file_that_was_cut_off_is_named(folder, take):
    edit(folder / "summary.json", weights=None)
    path = folder / "adapter/adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    assert take().startswith(f"{path}: ")


def test_weights_that_no_summary_records_count_in_the_digest(folder):
    change_weights(folder, lambda name, tensor: {})
    before = adapter_digest(folder)
    change_weights(folder, lambda name, tensor: {name: tensor + 1})
    assert adapter_digest(folder) != before


def test_dropout_of_another_program_is_switched_off(made, folder, take, tmp_path):
    policy, root = made
    edit(folder / "adapter/adapter_config.json", lora_dropout=0.05)
    take()
    assert json.loads((tmp_path / "out/adapter_config.json").read_bytes())["lora_dropout"] == 0
    load_policy(policy.config, root / "base", tmp_path / "out")


def test_a_fully_tuned_policy_travels_too(tmp_path):
    policy = make_policy(tmp_path / "base")
    write_summary(tmp_path / "base", 300)
    policy.save_adapter(tmp_path / "sft/adapter")
    summary = {"trained_on": trained_on(tmp_path / "base", "alfworld")}
    (tmp_path / "sft/summary.json").write_text(json.dumps(summary), encoding="utf-8")
    out = tmp_path / "out"
    take_adapter(tmp_path / "sft", policy.config, tmp_path / "base", "alfworld", out)
    name = "model.safetensors"
    assert (out / name).read_bytes() == (tmp_path / "sft/adapter" / name).read_bytes()
    lora = policy.config.model_copy(update={"adapt": "lora"})
    with pytest.raises(
        UserError, match=r"adapter_config\.json: missing, but required with `adapt: lora"
    ):
        take_adapter(tmp_path / "sft", lora, tmp_path / "base", "alfworld", tmp_path / "other")
