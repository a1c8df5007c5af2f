"""A policy must have its base's architecture and its study's LoRA settings."""

import json

import pytest
from tiny_policy import make_policy
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

from hgrpo.errors import UserError
from hgrpo.policy.compatible import check_architecture, check_lora
from hgrpo.policy.load import load_player, load_policy

CONFIGS = {"full": "config.json", "lora": "adapter_config.json"}


@pytest.fixture
def loads(tmp_path):
    """Saves a policy with some keys of its config changed, and returns the calls that load it."""

    def save(adapt, **changes):
        made = make_policy(tmp_path / "base", adapt=adapt)
        made.save_adapter(tmp_path / "adapter")
        edit(tmp_path / "adapter" / CONFIGS[adapt], **changes)
        return (
            lambda: load_policy(made.config, tmp_path / "base", tmp_path / "adapter"),
            lambda: load_player(made.config, tmp_path / "base", tmp_path / "adapter"),
            lambda: made.load_reference(tmp_path / "adapter"),
        )

    return save


def edit(path, **changes):
    """Change keys of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes), encoding="utf-8")


ROPE = {"rope_theta": 5.0, "rope_type": "default"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rope_parameters": ROPE}, "rope_parameters: {"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings: False, but "),
    ],
)
def test_a_policy_of_another_architecture_is_refused(loads, tmp_path, changes, expected):
    for load in loads("full", **changes):
        with pytest.raises(UserError) as caught:
            load()
        assert str(caught.value).startswith(f"{tmp_path / 'adapter/config.json'}: {expected}")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"r": 8}, "r: 8, but the study's model has `lora.rank`: 4"),
        ({"target_modules": "all-linear"}, "target_modules: 'all-linear', but "),
        ({"alpha_pattern": {"q_proj": 99}}, "alpha_pattern: {'q_proj': 99}; only plain LoRA"),
    ],
)
def test_an_adapter_of_other_lora_settings_is_refused(loads, tmp_path, changes, expected):
    for load in loads("lora", **changes):
        with pytest.raises(UserError) as caught:
            load()
        path = tmp_path / "adapter/adapter_config.json"
        assert str(caught.value).startswith(f"{path}: {expected}")


def test_the_order_of_targets_and_who_wrote_the_file_do_not_matter(loads):
    turned = ["v_proj", "q_proj", "o_proj", "k_proj"]
    for adapt, changes in (
        ("lora", {"target_modules": turned, "peft_version": "0"}),
        ("full", {"transformers_version": "4.0", "dtype": "bfloat16", "_name_or_path": "x"}),
    ):
        for load in loads(adapt, **changes):
            load()


@pytest.mark.parametrize(
    "config",
    [
        # As hubs have them: old names of keys, dropout, keys of other programs.
        {
            "model_type": "qwen2",
            "architectures": ["Qwen2ForCausalLM"],
            "rope_theta": 1000000.0,
            "torch_dtype": "bfloat16",
            "sliding_window": 32768,
            "use_sliding_window": False,
            "attention_dropout": 0.1,
            "transformers_version": "4.43.1",
        },
        {
            "model_type": "llama",
            "eos_token_id": [2, 3],
            "rope_scaling": {"type": "linear", "factor": 2.0},
            "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
        },
    ],
)
def test_what_was_saved_of_a_base_is_of_its_architecture(tmp_path, config):
    made = make_policy(tmp_path / "made")
    sizes = json.loads((tmp_path / "made/config.json").read_bytes())
    base = tmp_path / "base"
    kind = {"qwen2": Qwen2Config, "llama": LlamaConfig}[config["model_type"]]
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    shape = {key: sizes[key] for key in names}
    shape |= {"intermediate_size": 48, "num_key_value_heads": sizes["num_attention_heads"]}
    AutoModelForCausalLM.from_config(kind(**shape)).save_pretrained(base)
    (base / "config.json").write_text(json.dumps(shape | config), encoding="utf-8")
    (base / "tokenizer.json").write_bytes((tmp_path / "made/tokenizer.json").read_bytes())
    settings = made.config.model_copy(update={"max_length": 77})
    load_policy(settings, base).save_adapter(tmp_path / "adapter")
    check_architecture(tmp_path / "adapter", base, settings)
    load_policy(settings, base, tmp_path / "adapter").save_adapter(tmp_path / "again")
    check_architecture(tmp_path / "again", base, settings)


def test_an_adapter_of_many_targets_is_saved_with_those_of_the_study(tmp_path):
    made = make_policy(tmp_path / "base", adapt="lora")
    parts = [f"self_attn.{x}_proj" for x in "qkvo"] + [f"mlp.{x}_proj" for x in ("gate", "up")]
    targets = [f"{layer}{part}" for layer in ("", "0.", "1.", "layers.0.") for part in parts]
    # From twenty on, PEFT drops targets that others imply.
    assert len(targets) >= 20
    lora = made.config.lora.model_copy(update={"targets": targets})
    config = made.config.model_copy(update={"lora": lora})
    for start, out in ((None, "first"), (tmp_path / "first", "second")):
        load_policy(config, tmp_path / "base", start).save_adapter(tmp_path / out)
        check_lora(tmp_path / out, lora)
