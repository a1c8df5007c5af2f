"""The decoder's cache, how far it reaches and what memory it takes, and the models it computes.

Its log-probs of the tiny model: test_rollout.py, against the trainer.
"""

import re
from pathlib import Path

import pytest
import torch
from tiny_policy import make_policy
from transformers import AutoModelForCausalLM, LlamaConfig, PretrainedConfig, Qwen2Config

from hgrpo.errors import UserError
from hgrpo.rollout.torch.decoder import Branch, Decoder

STATUS = Path("/proc/self/status")
SIZES = {
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
WINDOWS = {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 1}


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return make_policy(tmp_path_factory.mktemp("base"))


def test_weights_and_cache_lie_on_the_device_asked_for(policy):
    decoder = Decoder(policy.architecture, 1, 4, torch.device("meta"))
    decoder.load(policy.merged_weights())
    tensors = decoder._keys, decoder._values, *decoder._weights.values()
    assert {(t.device.type, t.dtype) for t in tensors} == {("meta", torch.float32)}


@pytest.mark.skipif(not STATUS.exists(), reason="resident memory is read from Linux's /proc")
def test_a_short_conversation_in_every_row_takes_little(policy):
    before = resident()
    # 1.1 GB, were all of it touched, and 280 MB of it in these rows, as huge pages would.
    decoder = Decoder(policy.architecture, 256, 16_384, policy.device)
    decoder.load(policy.merged_weights())
    decoder.forward(list(range(64)), [[5, 6, 7]] * 64, [0] * 64)
    decoder.copy_prefix(0, [64, 65], 3)
    assert resident() - before < 50e6


def test_a_cache_beyond_all_memory_is_refused_with_what_to_lower(policy):
    with pytest.raises(UserError, match="100000000 conversations of 16384 tokens .* `in_flight`"):
        Decoder(policy.architecture, 10**8, 16_384, policy.device)


def random_model(config: PretrainedConfig) -> torch.nn.Module:
    """Every weight and bias far from zero, so that none can be left out unnoticed."""
    model = AutoModelForCausalLM.from_config(config).eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return model


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SIZES),
        LlamaConfig(**SIZES, attention_bias=True, hidden_act="swish"),
        LlamaConfig(**SIZES, mlp_bias=True, head_dim=10),
        LlamaConfig(**SIZES, tie_word_embeddings=True, rope_theta=500.0),
        Qwen2Config(**SIZES),
        Qwen2Config(**SIZES, **WINDOWS),
    ],
    ids=["llama", "attention bias, swish", "MLP bias", "tied", "qwen2", "wide window"],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_it_computes_what_transformers_does(config, compiled):
    model = random_model(config)
    decoder = Decoder(config, 1, 64, torch.device("cpu"), compiled)
    decoder.load(model.state_dict())
    tokens = torch.randint(0, 40, (1, 64), generator=torch.manual_seed(1))
    with torch.no_grad():
        expected = model(tokens).logits[0, [40, 63]]
    logits = [
        decoder.forward([0], [tokens[0, a:b].tolist()], [a])[0][0] for a, b in ((0, 41), (41, 64))
    ]
    torch.testing.assert_close(torch.stack(logits), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sums", [False, True])
def test_the_compiled_kernel_computes_what_grouped_attention_does(sums):
    model = random_model(LlamaConfig(**SIZES, head_dim=10))
    decoders = [Decoder(model.config, 6, 64, torch.device("cpu"), each) for each in (False, True)]
    for decoder in decoders:
        decoder.load(model.state_dict())
    tokens = torch.randint(0, 40, (64,), generator=torch.manual_seed(1)).tolist()
    long, short = Branch(4, 20), Branch(5, 7)
    # Slots, numbers of new tokens, starts, and branches. A row of a trunk begins within it.
    steps = [
        ([4, 5], [20, 9], [0, 0], ()),
        ([0, 2], [9, 1], [0, 0], ()),
        ([0, 2], [1, 3], [9, 1], ()),
        ([1, 3], [1, 5], [20, 7], (long, short)),
        ([0, 1, 3], [2, 4, 1], [10, 21, 12], (None, long, short)),
        ([0, 1, 3], [1, 1, 1], [12, 25, 13], (None, long, short)),
    ]
    for slots, counts, starts, branches in steps:
        new = [tokens[slot : slot + count] for slot, count in zip(slots, counts, strict=True)]
        plain, compiled = (
            decoder.forward(slots, new, starts, sums, branches) for decoder in decoders
        )
        torch.testing.assert_close(compiled, plain, rtol=1e-5, atol=1e-5)


def test_a_head_that_an_adapter_made_another_than_the_embeddings_is_used():
    model = random_model(LlamaConfig(**SIZES, tie_word_embeddings=True))
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    decoder = Decoder(model.config, 1, 64, torch.device("cpu"))
    decoder.load(weights)
    tied = decoder.forward([0], [[1, 2]], [0])[0]
    weights["lm_head.weight"] *= 2
    decoder.load(weights)
    torch.testing.assert_close(decoder.forward([0], [[1, 2]], [0])[0], 2 * tied)


@pytest.mark.parametrize("name", ["model.layers.0.self_attn.gate.weight", "model.norm.bias"])
def test_a_tensor_that_it_would_not_use_is_refused(name):
    model = random_model(LlamaConfig(**SIZES))
    decoder = Decoder(model.config, 1, 64, torch.device("cpu"))
    with pytest.raises(UserError, match=rf"tensor '{name}': not supported by the torch engine"):
        decoder.load(model.state_dict() | {name: torch.ones(32)})


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(re.search(r"VmRSS:\s+(\d+) kB", STATUS.read_text(encoding="utf-8"))[1]) * 1000
