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
from hgrpo.policy.given_adapter import given_digest, take_adapter, trained_on
from hgrpo.policy.load import load_policy


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


def change(folder, **entries):
    path = folder / "summary.json"
    summary = json.loads(path.read_bytes())
    summary["trained_on"] |= entries
    path.write_text(json.dumps(summary), encoding="utf-8")


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
            "trained_on.tokenizer: '0000000000000000', but the study's tokenizer, with its config",
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
    before = given_digest(folder)
    path = folder / "summary.json"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"weights": "', '"weights": "f'), encoding="utf-8"
    )
    assert given_digest(folder) != before
    with pytest.raises(UserError, match="its weights have the hash"):
        take_adapter(folder, policy.config, root / "base", "alfworld", tmp_path / "out")


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"trained_on": 1}', "\x00", "\ud800"])
def test_a_summary_of_another_kind_is_named(made, folder, tmp_path, text):
    policy, root = made
    (folder / "summary.json").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(UserError, match=rf"^{folder}/summary\.json: it does not say what") as said:
        take_adapter(folder, policy.config, root / "base", "alfworld", tmp_path / "out")
    assert "\n" not in str(said.value)


def test_a_path_that_is_no_folder_of_the_stage_is_named(made, folder, tmp_path):
    policy, root = made
    (tmp_path / "empty/summary.json").mkdir(parents=True)
    for path, problem in (
        (tmp_path / "none", "No such file or directory"),
        (folder / "summary.json", "Not a directory"),
        (tmp_path / "empty", "Is a directory"),
    ):
        with pytest.raises(UserError, match=rf"^sft\.adapter: {path}/summary.json: {problem}; a "):
            take_adapter(path, policy.config, root / "base", "alfworld", tmp_path / "out")


def test_another_rank_is_named(made, folder, tmp_path):
    policy, root = made
    lora = policy.config.lora.model_copy(update={"rank": 8})
    other = policy.config.model_copy(update={"lora": lora})
    with pytest.raises(UserError, match="r: 4, but lora.rank of the model is 8"):
        take_adapter(folder, other, root / "base", "alfworld", tmp_path / "out")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"r": 8}, "r: 8, but lora.rank of the model is 4"),
        ({"peft_type": "IA3"}, "peft_type: 'IA3'; only LORA is loaded"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save: ['lm_head']; only plain LoRA"),
        ({"auto_mapping": None, "auto_map": {"x": "y"}}, "auto_map: the model brings code"),
    ],
)
def test_an_adapter_of_another_kind_is_named(made, folder, tmp_path, changed, said):
    policy, root = made
    path = folder / "adapter/adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changed), encoding="utf-8")
    with pytest.raises(UserError) as refused:
        take_adapter(folder, policy.config, root / "base", "alfworld", tmp_path / "out")
    assert str(refused.value).startswith(f"{path}: {said}")
    assert not (tmp_path / "out").exists()


def by_hand(folder):
    """Make the summary as a person writes it, who knows no hash of the weights."""
    path = folder / "summary.json"
    path.write_text(
        json.dumps({"trained_on": json.loads(path.read_bytes())["trained_on"]}), encoding="utf-8"
    )


def changed_weights(folder, change):
    path = folder / "adapter/adapter_model.safetensors"
    tensors = load_file(path)
    name = sorted(tensors)[0]
    tensors |= change(name, tensors[name])
    save_file({each: tensor for each, tensor in tensors.items() if tensor is not None}, path)
    return path, name


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda name, tensor: {name: None}, "is missing; the base needs [4, 32]"),
        (
            lambda name, tensor: {name: torch.zeros(8, 32)},
            "has the shape [8, 32]; the base needs [4, 32]",
        ),
        (
            lambda name, tensor: {name: torch.zeros(4, 48)},
            "has the shape [4, 48]; the base needs [4, 32]",
        ),
        (lambda name, tensor: {name: tensor * float("nan")}, "has values that are not finite"),
    ],
)
def test_weights_that_do_not_fit_the_base_are_named(made, folder, tmp_path, change, said):
    policy, root = made
    by_hand(folder)
    path, name = changed_weights(folder, change)
    with pytest.raises(UserError) as refused:
        take_adapter(folder, policy.config, root / "base", "alfworld", tmp_path / "out")
    assert str(refused.value) == f"{path}: tensor {name!r} {said}"
    assert not (tmp_path / "out").exists()


def test_a_matrix_of_no_module_is_named(made, folder, tmp_path):
    policy, root = made
    by_hand(folder)
    more = "base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight"
    path, _ = changed_weights(folder, lambda name, tensor: {more: torch.zeros(4, 32)})
    with pytest.raises(UserError) as refused:
        take_adapter(folder, policy.config, root / "base", "alfworld", tmp_path / "out")
    assert str(refused.value) == f"{path}: tensor {more!r} belongs to no module of the base"


def test_a_file_that_was_cut_off_is_named(made, folder, tmp_path):
    policy, root = made
    by_hand(folder)
    path = folder / "adapter/adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match=rf"^{path}: ") as refused:
        take_adapter(folder, policy.config, root / "base", "alfworld", tmp_path / "out")
    assert "\n" not in str(refused.value)


def test_weights_that_no_summary_records_count_in_the_digest(made, folder):
    by_hand(folder)
    before = given_digest(folder)
    changed_weights(folder, lambda name, tensor: {name: tensor + 1})
    assert given_digest(folder) != before


def test_dropout_of_another_program_is_switched_off(made, folder, tmp_path):
    policy, root = made
    path = folder / "adapter/adapter_config.json"
    path.write_text(
        json.dumps(json.loads(path.read_bytes()) | {"lora_dropout": 0.05}), encoding="utf-8"
    )
    take_adapter(folder, policy.config, root / "base", "alfworld", tmp_path / "out")
    assert json.loads((tmp_path / "out/adapter_config.json").read_bytes())["lora_dropout"] == 0
    load_policy(policy.config, root / "base", tmp_path / "out")
    with pytest.raises(UserError, match="lora_dropout"):
        load_policy(policy.config, root / "base", folder / "adapter")


def test_a_fully_tuned_policy_travels_too(tmp_path):
    policy = make_policy(tmp_path / "base")
    write_summary(tmp_path / "base", 300)
    policy.save_adapter(tmp_path / "sft/adapter")
    summary = {"trained_on": trained_on(tmp_path / "base", "alfworld")}
    (tmp_path / "sft/summary.json").write_text(json.dumps(summary), encoding="utf-8")
    out = tmp_path / "out"
    take_adapter(tmp_path / "sft", policy.config, tmp_path / "base", "alfworld", out)
    assert (out / "model.safetensors").read_bytes() == (
        tmp_path / "sft/adapter/model.safetensors"
    ).read_bytes()
    lora = policy.config.model_copy(update={"adapt": "lora"})
    with pytest.raises(
        UserError, match=r"adapter_config\.json: missing; an adapter \(adapt: LoRA\)"
    ):
        take_adapter(tmp_path / "sft", lora, tmp_path / "base", "alfworld", tmp_path / "other")
