"""How likely the policy is to choose each of several replies, at many places of a sequence.

A reply is a list of tokens, so the replies at one place form a tree. A reply counts as chosen once
its tokens differ from all others, so later tokens are left out. Tokens with which all replies
begin are left out too. A reply's weight is the product of the probabilities of its remaining
tokens. The weights are then scaled to add up to 1.

At each place the sequence holds the reply that was played. One pass over the sequence therefore
gives the probabilities of the played replies and of all tokens that other replies share with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from hgrpo.policy.logprobs import make_batch, micro_batches, sampled_logits
from hgrpo.policy.policy import Policy

_BUDGET = 16_384

Node = tuple[int, ...]
# Number of the sequence, number of the choice, and a node of the choice's tree.
Name = tuple[int, int, Node]


@dataclass(frozen=True)
class Choice:
    """Replies to choose from at the position `start` of a sequence.

    Attributes:
        options: tokens of each reply, two or more; no reply may begin with another.
    """

    start: int
    options: Sequence[Sequence[int]]


def partings(options: Sequence[Sequence[int]]) -> list[Node]:
    """The beginnings of replies after which the next token must be known, shortest first.

    The shortest is the beginning that all replies share. The others are all longer beginnings that
    at least two replies share.
    """
    shared = len(_common(options))
    nodes = set()
    for option in options:
        others = [other for other in options if other is not option]
        longest = max(len(_common([option, other])) for other in others)
        nodes |= {tuple(option[:length]) for length in range(shared, longest + 1)}
    return sorted(nodes, key=lambda node: (len(node), node))


def _common(options: Sequence[Sequence[int]]) -> Node:
    shared = []
    for tokens in zip(*options, strict=False):
        if len(set(tokens)) > 1:
            break
        shared.append(tokens[0])
    return tuple(shared)


@torch.no_grad()
def choice_probabilities(
    policy: Policy,
    sequences: Sequence[Sequence[int]],
    choices: Sequence[Sequence[Choice]],
    temperature: float = 1.0,
) -> list[list[np.ndarray]]:
    """Probability of each option of each choice; `choices` has a list for each sequence.

    Returns:
        For each sequence and choice, float64 [number of options], which sums to 1.
    """
    trees = {
        (row, index): partings(choice.options)
        for row, each in enumerate(choices)
        for index, choice in enumerate(each)
    }
    read: list[tuple[list[int], int, Name]] = []
    for row, (sequence, each) in enumerate(zip(sequences, choices, strict=True)):
        whole = [*sequence, 0]
        for index, choice in enumerate(each):
            for node in trees[row, index]:
                end = choice.start + len(node)
                on_path = tuple(sequence[choice.start : end]) == node
                prefix = whole if on_path else [*sequence[: choice.start], *node, 0]
                read.append((prefix, end, (row, index, node)))
    following = _next_tokens(policy, read, temperature)

    def probabilities(row: int, index: int, choice: Choice) -> np.ndarray:
        after = {node: following[row, index, node] for node in trees[row, index]}
        return _normalised([_log_probability(option, after) for option in choice.options])

    return [
        [probabilities(row, index, choice) for index, choice in enumerate(each)]
        for row, each in enumerate(choices)
    ]


def _next_tokens(
    policy: Policy, read: Sequence[tuple[list[int], int, Name]], temperature: float
) -> dict[Name, np.ndarray]:
    """Log-probabilities [vocabulary] of the token after each node.

    A row that serves several nodes goes through the model once.
    """
    rows = {id(row): row for row, _, _ in read}
    places: dict[int, list[tuple[int, Name]]] = {name: [] for name in rows}
    for row, end, name in read:
        places[id(row)].append((end, name))
    names, following = list(rows), {}
    for batch in micro_batches([len(rows[name]) for name in names], _BUDGET):
        chosen = [names[index] for index in batch]
        spans = [[(end, end + 1) for end, _ in places[name]] for name in chosen]
        inputs = make_batch([rows[name] for name in chosen], spans, policy.device)
        logits = sampled_logits(policy.causal_lm, inputs) / temperature
        at = [place for name in chosen for _, place in places[name]]
        logs = torch.log_softmax(logits, dim=1).double().cpu().numpy()
        following |= dict(zip(at, logs, strict=True))
    return following


def _log_probability(option: Sequence[int], following: dict[Node, np.ndarray]) -> float:
    return sum(
        float(logs[option[len(node)]])
        for node, logs in following.items()
        if tuple(option[: len(node)]) == node and len(option) > len(node)
    )


def _normalised(logs: list[float]) -> np.ndarray:
    weights = np.exp(np.array(logs) - max(logs))
    return weights / weights.sum()
