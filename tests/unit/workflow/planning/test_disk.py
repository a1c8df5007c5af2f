"""How much disk a study still takes, by hand and against a model that is built."""

import pytest
from places import PROJECT

from hgrpo.base_model.settings import TinyModel
from hgrpo.policy.settings import LoraConfig, ModelConfig
from hgrpo.study.study import load_study
from hgrpo.workflow.planning.disk import disk_need, lora_parameters, parameters, tiny_parameters

STUDIES = PROJECT / "configs/studies"


def need(name, results, **overrides):
    return disk_need(load_study(STUDIES / f"{name}.yaml", overrides), results)


def test_a_built_model_has_as_many_parameters_as_are_counted():
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tiny = TinyModel(hidden_size=64, layers=2, heads=4, kv_heads=2, intermediate_size=96)
    config = Qwen2Config(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=96,
        vocab_size=tiny.max_vocab,
        tie_word_embeddings=True,
    )
    assert tiny_parameters(tiny) == Qwen2ForCausalLM(config).num_parameters()


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


def test_a_study_takes_its_rounds_and_what_it_has_already_counts_no_more(tmp_path):
    study = load_study(STUDIES / "sokoban_smoke.yaml")
    found = disk_need(study, tmp_path)
    trained = sum(arm.train for arm in study.methods.values())
    assert found.rounds == trained * len(study.config.seeds) * study.config.rounds
    # 755,712 weights of `tiny` with 2,048 tokens, 16 bytes each; in two steps of 4 * 4 games,
    # 2 bytes for each of 1,024 tokens.
    assert found.round_bytes == 755_712 * 16 + 2 * 4 * 4 * 1024 * 2
    assert found.bytes == (found.rounds + 2) * found.round_bytes + 10**9
    done = tmp_path / f"rl/flatGRPO/seed_{study.config.seeds[0]}/round_1"
    done.mkdir(parents=True)
    (done / "summary.json").write_text("{}")
    assert disk_need(study, tmp_path).rounds == found.rounds - 1


def test_a_studys_keys_and_its_model_make_a_difference(tmp_path):
    once, more = (need("webshop_5x40", tmp_path, seeds=seeds) for seeds in ("11", "11,23,31"))
    assert more.rounds == 3 * once.rounds and more.shared_bytes == once.shared_bytes
    # A copy of the base, 1.5e9 weights of two bytes, and one GB.
    assert once.shared_bytes == 4 * 10**9
    # A critic is a second network of the same size, with moments of its own.
    group, critic = (
        need("sokoban", tmp_path, methods=method).round_bytes for method in ("flatGRPO", "PPO")
    )
    assert critic - group == 755_712 * 16
