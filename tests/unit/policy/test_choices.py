"""The policy's choice among replies, against whole sequences scored one by one."""

import numpy as np
import pytest
import torch
from tiny_policy import make_policy

from hgrpo.policy.choices import Choice, choice_probabilities, partings


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return make_policy(tmp_path_factory.mktemp("base"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([[1, 2], [1, 3]], [(1,)]),
        ([[1, 2], [3, 2]], [()]),
        ([[1, 2, 9], [1, 3, 9], [4, 9]], [(), (1,)]),
        # What all share is left out, and so is the end of a reply that is alone already.
        ([[7, 1, 5, 2, 9], [7, 1, 5, 3, 9], [7, 8, 8, 8, 9]], [(7,), (7, 1), (7, 1, 5)]),
    ],
)
def test_the_tokens_that_tell_replies_apart(options, expected):
    assert partings(options) == expected


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_probabilities_are_those_of_the_tokens_that_tell_replies_apart(policy, temperature):
    vocabulary = policy.architecture.vocab_size
    rng = np.random.default_rng(0)
    sequence = rng.integers(vocabulary, size=20).tolist()
    a, b, c, d = rng.permutation(vocabulary)[:4].tolist()
    # One choice whose first option stands in the sequence, one whose options do not.
    sequence[5:8] = [a, b, c]
    choices = [
        Choice(5, [[a, b, c], [a, b, d], [d, a]]),
        Choice(12, [[a, b, c, d], [a, b, d, d], [b, b], [c, d]]),
    ]
    # The first sequence begins as the second, and has no choices.
    _, made = choice_probabilities(policy, [sequence[:7], sequence], [[], choices], temperature)

    def next_token(prefix: list[int]) -> torch.Tensor:
        with torch.no_grad():
            logits = policy.causal_lm(torch.tensor([prefix])).logits[0, -1].double()
        return torch.softmax(logits / temperature, 0)

    def expected(start: int, parts: list[list[int]]) -> np.ndarray:
        weights = []
        for tokens in parts:
            probability, prefix = 1.0, sequence[:start]
            for token in tokens:
                probability *= float(next_token(prefix)[token])
                prefix = [*prefix, token]
            weights.append(probability)
        return np.array(weights) / sum(weights)

    np.testing.assert_allclose(made[0], expected(5, [[a, b, c], [a, b, d], [d]]), rtol=1e-4)
    parts = [[a, b, c], [a, b, d], [b], [c]]
    np.testing.assert_allclose(made[1], expected(12, parts), rtol=1e-4)
