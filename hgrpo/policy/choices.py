"""The policy's probabilities of given candidate replies at positions of a sequence.

The candidate replies at one position form a prefix tree. Two parts of a candidate are ignored: the
prefix that all candidates share, and all tokens after the first one that distinguishes it from all
others. A candidate's weight is the product of the probabilities of its remaining tokens. The
weights are normalised to sum to 1.

The sequence contains the played reply at each position. One forward pass over the sequence gives
the probabilities after all prefixes of played replies. Other prefixes require separate passes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from hgrpo.policy.logprobs import make_batch, micro_batches, sampled_logits
from hgrpo.policy.policy import Policy

_BUDGET = 16_384

Node = tuple[int, ...]
# A node is named by the index of its sequence, the index of its choice, and its tokens.
Name = tuple[int, int, Node]


@dataclass(frozen=True)
class Choice:
    """Replies to choose from at the position `start` of a sequence.

    Attributes:
        options: tokens of each of two or more replies; no reply may be a prefix of another.
    """

    start: int
    options: Sequence[Sequence[int]]


def partings(options: Sequence[Sequence[int]]) -> list[Node]:
    """Prefixes of replies, shortest first, after which next-token probabilities are required.

    The first is the longest prefix shared by all replies. The others are the longer prefixes shared
    by at least two replies.
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
    """Probability of each option of each choice; `choices` contains one list per sequence.

    Returns:
        For each sequence and choice, float64 [number of options] with sum 1.
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

    Nodes on the same token sequence share one forward pass.
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
