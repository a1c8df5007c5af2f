"""Training passes use bfloat16 if the device has it, unless the config names a type."""

import pytest
import torch

from hgrpo.base_model.settings import TinyModel
from hgrpo.policy import precision
from hgrpo.policy.precision import autocast_dtype, cast, dtype_name, has_bfloat16
from hgrpo.policy.settings import ModelConfig

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def model(**changes):
    return ModelConfig(name="m", tiny=TinyModel(), **changes)


def capabilities(monkeypatch, **present):
    monkeypatch.setattr(precision.torch.cpu, "get_capabilities", lambda: present)


@pytest.mark.parametrize(
    ("capable", "changes", "dtype"),
    [
        ({"avx512_bf16": True}, {}, torch.bfloat16),
        ({"amx_bf16": True, "avx2": True}, {}, torch.bfloat16),
        ({"avx512_bf16": True}, {"train_dtype": "float32"}, None),
        ({"avx2": True, "avx512_f": True, "avx512_bf16": False}, {}, None),
        ({}, {"train_dtype": "bfloat16"}, torch.bfloat16),
        ({}, {"adapt": "lora", "base_dtype": "bfloat16"}, torch.bfloat16),
    ],
)
def test_auto_is_bfloat16_where_the_processor_or_the_base_has_it(
    monkeypatch, capable, changes, dtype
):
    capabilities(monkeypatch, **capable)
    assert autocast_dtype(model(**changes), CPU) is dtype


@pytest.mark.parametrize("supported", [True, False])
def test_a_gpu_is_asked_for_bfloat16_that_is_not_emulated(monkeypatch, supported):
    capabilities(monkeypatch, avx512_bf16=not supported)
    options_seen = {}
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda **options: options_seen.update(options) or supported
    )
    assert has_bfloat16(CUDA) is supported
    assert options_seen == {"including_emulation": False}


@pytest.mark.parametrize("dtype", [torch.bfloat16, None])
def test_a_pass_runs_in_what_was_chosen(dtype):
    left = torch.ones(2, 2)
    with cast(CPU, dtype):
        product = left @ left
    assert product.dtype is (dtype or torch.float32)
    assert dtype_name(dtype) == str(product.dtype).removeprefix("torch.")
