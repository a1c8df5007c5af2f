"""Log-probabilities in chunks, with less memory and in other formats are the same numbers."""

import pytest
import torch
from tiny_policy import make_policy

from hgrpo.errors import UserError
from hgrpo.policy import logprobs
from hgrpo.policy.load import load_player, load_policy
from hgrpo.policy.logprobs import make_batch, sampled_logprobs
from hgrpo.policy.precision import chosen_device
from hgrpo.policy.settings import ModelConfig

SEQUENCES = [[5, 6, 7, 8, 9, 10], [11, 12, 13, 14], [5, 9, 9, 9, 9, 9, 9, 3, 2]]
SPANS = [[(2, 4), (5, 6)], [(1, 4)], [(3, 8)]]
SAMPLED = 3 + 3 + 5


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    make_policy(folder)
    return folder


def settings(**changes):
    return ModelConfig(name="test", path=".", **({"train_dtype": "float32"} | changes))


def differentiated(policy, **options):
    """Log-probs, entropies, and the gradient of the log-probs' weighted sum."""
    logps, spread = sampled_logprobs(policy.causal_lm, make_batch(SEQUENCES, SPANS), **options)
    weighted = (logps * torch.linspace(-1, 2, len(logps))).sum()
    parameters = [parameter for _, parameter in policy.trainable]
    parts = torch.autograd.grad(weighted, parameters)
    return logps.detach(), spread, torch.cat([part.flatten() for part in parts])


def test_by_the_whole_table_of_logits(base):
    policy = load_policy(settings(), base)
    logps, spread, _ = differentiated(policy, temperature=0.7, entropies=True)
    expected, entropies = [], []
    with torch.no_grad():
        for ids, spans in zip(SEQUENCES, SPANS, strict=True):
            logits = policy.causal_lm(input_ids=torch.tensor([ids])).logits[0] / 0.7
            for place in (p for start, end in spans for p in range(start, end)):
                logp = logits[place - 1].log_softmax(-1)
                expected.append(logp[ids[place]])
                entropies.append(-(logp.exp() * logp).sum())
    assert len(expected) == SAMPLED
    assert torch.allclose(logps, torch.stack(expected), atol=1e-5)
    assert torch.allclose(spread, torch.stack(entropies), atol=1e-5)


def test_chunks_change_nothing_and_keep_no_whole_table(base, monkeypatch):
    policy = load_policy(settings(), base)
    whole = differentiated(policy, entropies=True)
    vocabulary = policy.architecture.vocab_size
    monkeypatch.setattr(logprobs, "_LOGITS", 4 * vocabulary)
    rows = []
    made = logprobs._chosen_logprobs
    monkeypatch.setattr(
        logprobs, "_chosen_logprobs", lambda s, *rest: rows.append(len(s)) or made(s, *rest)
    )
    chunked = differentiated(policy, entropies=True)
    # Three chunks, each computed again in the backward pass.
    assert sorted(rows) == sorted([4, 4, SAMPLED - 8] * 2)
    for one, other in zip(whole, chunked, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_checkpointed_layers_have_the_same_gradient(base):
    plain = differentiated(load_policy(settings(), base))
    policy = load_policy(settings(gradient_checkpointing=True), base)
    calls = []
    layer = policy.causal_lm.model.layers[0].mlp
    layer.register_forward_pre_hook(lambda *_: calls.append(1))
    saved = differentiated(policy)
    assert len(calls) == 2, "a layer runs again in the backward pass"
    assert torch.allclose(plain[0], saved[0], atol=1e-6)
    assert torch.allclose(plain[2], saved[2], atol=1e-5)


def test_layers_are_checkpointed_also_beside_a_reference_adapter(base, tmp_path):
    policy = load_policy(settings(adapt="lora", gradient_checkpointing=True), base)
    policy.save_adapter(tmp_path / "sft")
    policy.load_reference(tmp_path / "sft")
    calls = []
    layer = policy.causal_lm.model.layers[0].mlp
    layer.register_forward_pre_hook(lambda *_: calls.append(1))
    differentiated(policy)
    assert len(calls) == 2, "a layer runs again in the backward pass"


def test_adapters_stay_whole_on_a_bfloat16_base(base):
    policy = load_policy(settings(adapt="lora", base_dtype="bfloat16"), base)
    assert {p.dtype for _, p in policy.trainable} == {torch.float32}
    frozen = {p.dtype for _, p in policy.model.named_parameters() if not p.requires_grad}
    assert frozen == {torch.bfloat16}
    whole = load_policy(settings(adapt="lora"), base)
    logps, other = differentiated(policy)[0], differentiated(whole)[0]
    assert torch.allclose(logps, other, atol=0.05) and not torch.equal(logps, other)


def test_a_small_change_of_an_adapter_survives_merging_into_a_bfloat16_base(base):
    policy = load_policy(settings(adapt="lora", base_dtype="bfloat16"), base)
    name = "model.layers.0.self_attn.q_proj.weight"
    before = policy.merged_weights()[name].clone()
    layer = policy.causal_lm.model.layers[0].self_attn.q_proj
    with torch.no_grad():
        layer.lora_A["default"].weight.fill_(1e-3)
        layer.lora_B["default"].weight.fill_(1e-3)
    change = policy.merged_weights()[name] - before
    lora = policy.config.lora
    assert torch.allclose(
        change, torch.full_like(change, 1e-6 * lora.rank * lora.alpha / lora.rank)
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_without_a_gpu():
    assert chosen_device(settings()).type == "cpu"
    with pytest.raises(UserError, match="model test: `device: cuda`, but torch detects no GPU"):
        chosen_device(settings(device="cuda"))


def test_conversations_are_capped(base):
    whole = load_policy(settings(), base).architecture.max_position_embeddings
    assert load_policy(settings(max_length=77), base).architecture.max_position_embeddings == 77
    assert (
        load_player(settings(max_length=77), base, base).architecture.max_position_embeddings == 77
    )
    more = load_policy(settings(max_length=whole + 1), base)
    assert more.architecture.max_position_embeddings == whole
