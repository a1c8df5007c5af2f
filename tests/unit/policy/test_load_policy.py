"""Bases, targets and attentions that do not load are named in one line."""

import importlib.util

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_policy import make_policy

from hgrpo.errors import UserError
from hgrpo.policy import saved_weights
from hgrpo.policy.load import load_policy

MATRIX = "model.layers.1.mlp.up_proj.weight"


@pytest.fixture
def made(tmp_path):
    return make_policy(tmp_path)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({MATRIX: None}, f"tensor '{MATRIX}' is missing"),
        ({MATRIX: torch.zeros(3, 3)}, f"tensor '{MATRIX}' has another shape"),
        ({"model.more": torch.zeros(1)}, "tensor 'model.more' is not one of the model"),
    ],
)
@pytest.mark.parametrize("adapt", ["full", "lora"])
def test_a_tensor_that_does_not_fit_is_named(made, capfd, adapt, changed, expected):
    path = made.base_folder / "model.safetensors"
    tensors = {n: tensor for n, tensor in (load_file(path) | changed).items() if tensor is not None}
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(UserError) as caught:
        load_policy(made.config.model_copy(update={"adapt": adapt}), made.base_folder)
    assert str(caught.value).startswith(f"{path}: {expected}")
    assert "LOAD REPORT" not in capfd.readouterr().err


@pytest.fixture
def read(monkeypatch):
    """Names of the files whose values were checked."""
    names = []
    load = saved_weights.load_file
    monkeypatch.setattr(saved_weights, "load_file", lambda p: names.append(p.name) or load(p))
    return names


def test_weights_of_a_base_under_lora_are_read_once(tmp_path, read):
    made = make_policy(tmp_path / "base", adapt="lora")
    made.save_adapter(tmp_path / "adapter")
    load_policy(made.config, tmp_path / "base", tmp_path / "adapter")
    assert read == ["adapter_model.safetensors"]


@pytest.mark.parametrize("adapt", ["full", "lora"])
def test_a_base_that_safetensors_cannot_read_is_one_line(tmp_path, adapt):
    made = make_policy(tmp_path, adapt=adapt)
    path = tmp_path / "model.safetensors"
    save_file(load_file(path), path, metadata={"format": "pt"})
    path.write_bytes(path.read_bytes().replace(b'"F32"', b'"X32"', 1))
    with pytest.raises(UserError) as caught:
        load_policy(made.config, tmp_path)
    said = str(caught.value)
    assert said.startswith(f"{path}: not a whole safetensors file (") and "\n" not in said


def test_a_head_that_is_not_tied_is_missed(made):
    config = made.base_folder / "config.json"
    text = config.read_text(encoding="utf-8")
    config.write_text(
        text.replace('"tie_word_embeddings": true', '"tie_word_embeddings": false'),
        encoding="utf-8",
    )
    with pytest.raises(UserError, match=r"tensor 'lm_head\.weight' is missing"):
        load_policy(made.config, made.base_folder)


@pytest.mark.parametrize("targets", [["q_prj"], ["v_proj", "q_prj"], ["proj"], ["mlp"]])
def test_targets_that_are_no_modules_are_named(made, targets):
    lora = made.config.lora.model_copy(update={"targets": targets})
    config = made.config.model_copy(update={"adapt": "lora", "lora": lora})
    with pytest.raises(UserError) as caught:
        load_policy(config, made.base_folder)
    said = str(caught.value)
    assert said.startswith(f"lora.targets: {targets[-1]!r}: ") and "k_proj" in said


def test_targets_may_be_ends_of_names(made):
    lora = made.config.lora.model_copy(update={"targets": ["self_attn.q_proj", "1.mlp.up_proj"]})
    config = made.config.model_copy(update={"adapt": "lora", "lora": lora})
    # Two halves for the query of each layer, and for one matrix of the second.
    assert len(load_policy(config, made.base_folder).trainable) == 2 * 2 + 2


def test_an_attention_that_is_not_installed_is_named(made):
    if importlib.util.find_spec("flash_attn") or importlib.util.find_spec("kernels"):
        pytest.skip("flash attention can be had here")
    config = made.config.model_copy(update={"attention": "flash_attention_2"})
    with pytest.raises(UserError, match=r"^attention: 'flash_attention_2': \S.*installed"):
        load_policy(config, made.base_folder)
