"""Entropies of replies, against whole prefixes scored one by one."""

import numpy as np
import pytest
import torch
from tiny_policy import make_policy

from hgrpo.policy.logprobs import reply_entropies


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return make_policy(tmp_path_factory.mktemp("base"))


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_entropies_are_those_of_the_next_token(policy, temperature):
    vocabulary = policy.architecture.vocab_size
    tokens = np.random.default_rng(0).integers(vocabulary, size=20).tolist()
    spans = [(3, 6), (11, 12), (15, 20)]

    def entropy(prefix):
        with torch.no_grad():
            logits = policy.causal_lm(torch.tensor([prefix])).logits[0, -1].double()
        shares = torch.softmax(logits / temperature, 0)
        return float(-(shares * shares.log()).sum())

    rows = reply_entropies(policy, tokens, spans, temperature)
    for row, (start, end) in zip(rows, spans, strict=True):
        expected = [entropy(tokens[:place]) for place in range(start, end)]
        np.testing.assert_allclose(row, expected, atol=1e-4)
        assert row.dtype == np.float64


def test_a_conversation_without_replies_has_none(policy):
    assert reply_entropies(policy, [1, 2, 3], []) == []
