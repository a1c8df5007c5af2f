"""Bases, targets and attentions that do not load are named; a fresh adapter follows its seed."""

import importlib.util

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_policy import make_policy

from hgrpo.errors import UserError
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


def test_a_base_that_safetensors_cannot_read_is_named(made):
    path = made.base_folder / "model.safetensors"
    save_file(load_file(path), path, metadata={"format": "pt"})
    path.write_bytes(path.read_bytes().replace(b'"F32"', b'"X32"', 1))
    with pytest.raises(UserError, match="not a whole safetensors file"):
        load_policy(made.config, made.base_folder)


@pytest.mark.parametrize("targets", [["v_proj", "q_prj"], ["proj"], ["mlp"]])
def test_targets_that_are_no_modules_are_named(made, targets):
    lora = made.config.lora.model_copy(update={"targets": targets})
    config = made.config.model_copy(update={"adapt": "lora", "lora": lora})
    with pytest.raises(UserError) as caught:
        load_policy(config, made.base_folder)
    message = str(caught.value)
    assert message.startswith(f"lora.targets: {targets[-1]!r}: ") and "k_proj" in message


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


def test_a_fresh_adapter_is_the_same_every_time_and_leaves_other_random_numbers_alone(made):
    def fresh(seed=0):
        config = made.config.model_copy(update={"adapt": "lora"})
        return load_policy(config, made.base_folder, seed=seed).trained_state()

    torch.manual_seed(1)
    first, drawn = fresh(), torch.rand(1)
    torch.manual_seed(1)
    assert torch.rand(1) == drawn
    second, other = fresh(), fresh(1)
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name])
        # The half that is not random is zero.
        assert torch.equal(tensor, other[name]) == (not tensor.any())
    assert {bool(tensor.any()) for tensor in first.values()} == {True, False}
