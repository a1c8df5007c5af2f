"""The config that a model is loaded with."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, OPTConfig, Qwen2Config

from hgrpo.base_model.architecture import PlainConfig, capped_architecture, played_architecture

SMALL = {"vocab_size": 11, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
FAMILIES = {
    "gpt2": GPT2Config(
        n_layer=1, n_head=2, n_embd=8, n_positions=16, embd_pdrop=0.5, attn_pdrop=0.5, **SMALL
    ),
    "opt": OPTConfig(
        hidden_size=8,
        word_embed_proj_dim=8,
        ffn_dim=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=16,
        dropout=0.5,
        layerdrop=0.5,
        **SMALL,
    ),
}


@pytest.mark.parametrize("config", FAMILIES.values(), ids=FAMILIES)
def test_nothing_is_drawn_in_training_mode(tmp_path, config):
    """Gradient checkpointing needs training mode."""
    config.save_pretrained(tmp_path)
    model = AutoModelForCausalLM.from_config(capped_architecture(tmp_path, None)).train()
    tokens = torch.arange(8)[None]
    first, second = (model(tokens).logits for _ in range(2))
    assert torch.equal(first, second)


PLAIN = {
    "tied": Qwen2Config(num_hidden_layers=2, tie_word_embeddings=True),
    "untied": Qwen2Config(num_hidden_layers=2, hidden_size=96, num_key_value_heads=4),
    "llama": LlamaConfig(num_hidden_layers=2, rms_norm_eps=0.01, max_position_embeddings=77),
    "own heads": LlamaConfig(head_dim=24, rope_parameters={"rope_theta": 5.0}),
}


@pytest.mark.parametrize("config", PLAIN.values(), ids=PLAIN)
@pytest.mark.parametrize("longest", [None, 50, 100_000])
def test_a_plain_config_is_read_as_transformers_reads_it(tmp_path, config, longest):
    config.save_pretrained(tmp_path)
    read, expected = (
        choose(tmp_path, longest) for choose in (played_architecture, capped_architecture)
    )
    assert type(read) is PlainConfig
    for name in PlainConfig.model_fields.keys() - {"use_sliding_window"}:
        assert getattr(read, name) == getattr(expected, name, None), name


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "opt"},
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1.0, "factor": 2.0}},
        {"layer_types": ["sliding_attention", "full_attention"]},
        {"use_sliding_window": True},
        {"more": 1},
    ],
    ids=str,
)
def test_any_other_config_is_left_to_transformers(tmp_path, changes):
    PLAIN["tied"].save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | changes), encoding="utf-8")
    read = played_architecture(tmp_path, None)
    assert read.to_dict() == capped_architecture(tmp_path, None).to_dict()


def test_a_key_that_is_missing_is_left_to_transformers(tmp_path):
    PLAIN["tied"].save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_bytes())
    del config["tie_word_embeddings"]
    path.write_text(json.dumps(config), encoding="utf-8")
    assert type(played_architecture(tmp_path, None)) is not PlainConfig
