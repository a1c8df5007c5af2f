"""The config that a model is loaded with."""

import pytest
import torch
from transformers import AutoModelForCausalLM, GPT2Config, OPTConfig

from hgrpo.base_model.architecture import capped_architecture

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
