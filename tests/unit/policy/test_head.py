"""Families whose head is more than a matrix train, by what their own `forward` computes."""

import pytest
import torch
import torch.nn.functional as F
from tiny_policy import make_policy
from transformers import (
    AutoModelForCausalLM,
    CohereConfig,
    Gemma2Config,
    GraniteConfig,
    OPTConfig,
    PhiConfig,
    Qwen2ForCausalLM,
    Qwen3Config,
)

from hgrpo.errors import UserError
from hgrpo.policy import logprobs
from hgrpo.policy.head import check_head, decode
from hgrpo.policy.load import load_policy
from hgrpo.policy.logprobs import make_batch, sampled_logits, sampled_logprobs

SEQUENCES = [[5, 6, 7, 8, 9, 10], [11, 12, 13, 14], [5, 9, 9, 9, 9, 9, 9, 3, 2]]
SPANS = [[(2, 4), (5, 6)], [(1, 4)], [(3, 8)]]
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "initializer_range": 0.5,
    "pad_token_id": 0,
}
# Each with what its `forward` does to the head's products; Qwen3's does nothing.
FAMILIES = {
    "soft cap": (Gemma2Config, {"head_dim": 8, "final_logit_softcapping": 3.0}),
    "divisor": (GraniteConfig, {"logits_scaling": 3.0}),
    "factor": (CohereConfig, {"logit_scale": 0.25}),
    "bias": (PhiConfig, {"tie_word_embeddings": False}),
    "nothing": (Qwen3Config, {"head_dim": 8}),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_policy(tmp_path_factory.mktemp("made"))


@pytest.fixture
def load(made, tmp_path):
    """Loads a policy whose base is a random model of a config."""

    def call(config, **changes):
        vocabulary = made.architecture.vocab_size
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(
            type(config).from_dict(config.to_dict() | {"vocab_size": vocabulary})
        )
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.normal_(parameter)
        model.save_pretrained(tmp_path)
        (tmp_path / "tokenizer.json").write_bytes(
            (made.base_folder / "tokenizer.json").read_bytes()
        )
        return load_policy(made.config.model_copy(update=changes), tmp_path)

    return call


def by_forward(policy):
    """Logits [N, vocabulary] of the whole model's `forward`, sequence by sequence."""
    rows = []
    for ids, spans in zip(SEQUENCES, SPANS, strict=True):
        logits = policy.causal_lm(input_ids=torch.tensor([ids])).logits[0]
        rows += [logits[place - 1] for start, end in spans for place in range(start, end)]
    return torch.stack(rows)


def chosen():
    batch = make_batch(SEQUENCES, SPANS)
    return batch.token_ids[batch.rows, batch.columns]


def gradient(policy, values):
    weighted = (values * torch.linspace(-1, 2, len(values))).sum()
    parameters = [parameter for _, parameter in policy.trainable]
    parts = torch.autograd.grad(weighted, parameters, allow_unused=True)
    return torch.cat([part.flatten() for part in parts if part is not None])


@pytest.mark.parametrize(
    ("after", "adapt"), [*((after, "full") for after in FAMILIES), ("divisor", "lora")]
)
def test_a_family_trains_by_its_own_logits(made, load, monkeypatch, after, adapt):
    family, options = FAMILIES[after]
    lora = made.config.lora.model_copy(update={"rank": 4, "targets": ["q_proj", "v_proj"]})
    policy = load(family(**SIZES, **options), adapt=adapt, lora=lora)
    if adapt == "lora":
        for _, parameter in policy.trainable:
            torch.nn.init.normal_(parameter, std=0.1)
    batch = make_batch(SEQUENCES, SPANS)
    expected = by_forward(policy)
    logits = sampled_logits(policy.causal_lm, batch)
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)
    states, _ = decode(policy.causal_lm, batch.token_ids)
    products = F.linear(states[batch.rows, batch.columns - 1], policy.causal_lm.lm_head.weight)
    assert torch.allclose(products, expected, atol=0.1) == (after == "nothing")
    logps = expected.log_softmax(-1).gather(1, chosen()[:, None]).squeeze(1)
    slope = gradient(policy, logps)
    assert slope.abs().max() > 1e-3
    # All at once, and in chunks that the backward pass computes again.
    for size in (logprobs._LOGITS, 4 * expected.shape[1]):
        monkeypatch.setattr(logprobs, "_LOGITS", size)
        sampled, _ = sampled_logprobs(policy.causal_lm, batch)
        torch.testing.assert_close(sampled, logps, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(gradient(policy, sampled), slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "changes", [{"adapt": "lora", "base_dtype": "bfloat16"}, {"train_dtype": "bfloat16"}]
)
def test_large_logits_in_bfloat16_are_within_tolerance(load, changes):
    policy = load(GraniteConfig(**SIZES | {"initializer_range": 3.0}), **changes)
    logits = sampled_logits(policy.causal_lm, make_batch(SEQUENCES, SPANS))
    assert logits.dtype == torch.float32


def test_products_are_bit_for_bit_those_of_a_plain_head(made):
    batch = make_batch(SEQUENCES, SPANS)
    sampled, _ = sampled_logprobs(made.causal_lm, batch)
    hidden = made.causal_lm.model(input_ids=batch.token_ids, use_cache=False).last_hidden_state
    states = hidden[batch.rows, batch.columns - 1].float()
    logits = F.linear(states, made.causal_lm.lm_head.weight.float())
    plain = logits.gather(1, chosen()[:, None]).squeeze(1) - torch.logsumexp(logits, dim=1)
    assert torch.equal(sampled, plain)
    assert torch.equal(gradient(made, sampled), gradient(made, plain))


def test_a_head_is_float32_under_autocast(made):
    batch = make_batch(SEQUENCES, SPANS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        states, head = decode(made.causal_lm, batch.token_ids)
        states = states[0].float()
        logits = head(states)
    assert logits.dtype == torch.float32
    assert torch.equal(logits, F.linear(states, made.causal_lm.lm_head.weight))


class Drifting(Qwen2ForCausalLM):
    """Its logits depend on where a state stands, which a state alone does not tell."""

    def forward(self, *args, **kwargs):
        outputs = super().forward(*args, **kwargs)
        outputs.logits = outputs.logits + torch.arange(outputs.logits.shape[1])[:, None]
        return outputs


class Shuffling(Qwen2ForCausalLM):
    """Its logits are not those of its tokens in order."""

    def forward(self, input_ids=None, **kwargs):
        decoded = self.model(input_ids=input_ids, **kwargs)
        logits = self.lm_head(decoded.last_hidden_state)
        if input_ids is not None:
            logits = logits.flip(1)
        return type("Output", (), {"logits": logits})


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Drifting, "model_type: 'qwen2': cannot compute logits from the last hidden states ("),
        (Shuffling, "model_type: 'qwen2': unsupported, because its logits are not a function"),
    ],
)
def test_a_forward_that_needs_more_than_states_is_refused(made, model, expected):
    with pytest.raises(UserError) as caught:
        check_head(model(made.architecture))
    assert str(caught.value).startswith(expected) and "\n" not in str(caught.value)


def test_a_decoder_that_is_reached_in_another_way_is_refused_when_it_is_loaded(load):
    sizes = {key: SIZES[key] for key in ("hidden_size", "num_hidden_layers", "pad_token_id")}
    config = OPTConfig(**sizes, num_attention_heads=4, ffn_dim=48, word_embed_proj_dim=32)
    with pytest.raises(UserError, match=r"^model_type: 'opt': cannot compute logits"):
        load(config)
