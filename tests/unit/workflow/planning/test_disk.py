"""Bytes of a study's models, by hand."""

import pytest
from places import PROJECT

from hgrpo.policy.settings import LoraConfig, ModelConfig
from hgrpo.study.study import load_study
from hgrpo.workflow.planning.reference import lora_parameters, model_bytes, parameters

STUDIES = PROJECT / "configs/studies"


@pytest.mark.parametrize(
    ("size", "targets", "real"),
    [
        # rank * layers * (inputs + outputs), from the models' published configs: width, keys' width
        # and feed-forward width are 1536, 256 and 8960 in 28 layers, and 576, 192 and 1536 in 30.
        (1.54e9, "qkvo", 16 * 28 * 2 * (1536 + 1536 + 1536 + 256)),
        (1.54e9, "qkvo+", 16 * 28 * (2 * (3072 + 1792) + 3 * (1536 + 8960))),
        (135e6, "qkvo+", 16 * 30 * (2 * (1152 + 768) + 3 * (576 + 1536))),
    ],
)
def test_an_adapter_is_smaller_than_its_estimate_but_not_by_much(size, targets, real):
    attention = [f"{letter}_proj" for letter in targets.rstrip("+")]
    others = ["gate_proj", "up_proj", "down_proj"] if targets.endswith("+") else []
    estimate = lora_parameters(size, LoraConfig(rank=16, targets=attention + others))
    assert real <= estimate <= 2.5 * real


@pytest.mark.parametrize(
    ("folder", "name", "expected"),
    [
        ("Qwen2.5-1.5B-Instruct", "mine", 1_500_000_000),
        ("my-model", "smollm2-135m", 135_000_000),
        ("my-model-v2", "mine", None),
    ],
)
def test_a_model_that_is_not_there_has_the_size_in_its_name(tmp_path, folder, name, expected):
    model = ModelConfig(name=name, path=f"{tmp_path}/{folder}")
    assert parameters(model) == expected
    # Its weights say more than its name.
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "model.safetensors").write_bytes(bytes(2000))
    assert parameters(model) == 1000


def test_bytes_of_models_by_hand():
    def each(name, stage, arm="", **overrides):
        return model_bytes(load_study(STUDIES / f"{name}.yaml", overrides), stage, arm)

    # 755,712 weights of `tiny` with 2,048 tokens, 16 bytes each; in two steps of 4 * 4 games,
    # 2 bytes for each of 1,024 tokens.
    assert each("sokoban_smoke", "rl_round", "flatGRPO") == 755_712 * 16 + 2 * 4 * 4 * 1024 * 2
    assert each("sokoban_smoke", "sft") == 755_712 * 16
    assert each("webshop_5x40", "base") == 1_500_000_000 * 4
    # A critic is a second network of the same size, with moments of its own.
    group, critic = (each("sokoban", "rl_round", arm) for arm in ("flatGRPO", "PPO"))
    assert critic - group == 755_712 * 16
