"""The tiny base model: a Qwen2-architecture model with random weights."""

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from hgrpo.agent.tokenizer import ACT, END, PAD, START
from hgrpo.base_model.settings import TinyModel
from hgrpo.streams import key

# Standard deviation of initial matrices. At a width near 128, the usual 0.02 makes the outputs of
# the residual branches so small that training is slow.
_MATRIX_STD = 0.04


def build_tiny(config: TinyModel, tokenizer: Tokenizer, seed: int) -> Qwen2ForCausalLM:
    """A model for `tokenizer`, with weights drawn from the stream ("tiny-init", seed)."""
    model_config = Qwen2Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=config.hidden_size,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        intermediate_size=config.intermediate_size,
        max_position_embeddings=config.max_positions,
        tie_word_embeddings=True,
        attention_dropout=0.0,
        bos_token_id=tokenizer.token_to_id(START),
        eos_token_id=tokenizer.token_to_id(END),
        pad_token_id=tokenizer.token_to_id(PAD),
        attn_implementation="eager",
    )
    model = Qwen2ForCausalLM(model_config)
    generator = torch.Generator().manual_seed(key("tiny-init", seed) % 2**63)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("embed_tokens.weight"):
                parameter.normal_(0.0, config.embedding_std, generator=generator)
            elif parameter.dim() == 2:
                parameter.normal_(0.0, _MATRIX_STD, generator=generator)
            elif name.endswith("bias"):
                parameter.zero_()
            else:
                parameter.fill_(1.0)
    return model


def hugging_face_tokenizer(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """Wrap the tokenizer in the class that transformers saves and loads."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=START,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=[ACT],
    )
