"""Log-probabilities of whole trajectories: one sequence each, padded into micro-batches.

Logits are made where a token was sampled, a chunk of tokens at a time, and a chunk's are made again
in the backward pass: those of a large vocabulary are never held for a whole micro-batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_MULTIPLE = 16
# Logits held at a time: 256 MB of float32.
_LOGITS = 2**26


@dataclass(frozen=True)
class SequenceBatch:
    """Right-padded sequences and which of their tokens were sampled.

    Attributes:
        token_ids: int64 [B, L].
        rows, columns: int64 [N], the place of each sampled token, in row order; column >= 1.
    """

    token_ids: Tensor
    rows: Tensor
    columns: Tensor


def make_batch(
    sequences: Sequence[Sequence[int]],
    spans: Sequence[Sequence[tuple[int, int]]],
    device: torch.device | None = None,
) -> SequenceBatch:
    """Pad sequences to the longest; `spans` are the [start, end) sampled parts of each."""
    longest = _rounded(max(len(sequence) for sequence in sequences))
    token_ids = torch.zeros(len(sequences), longest, dtype=torch.long)
    rows: list[int] = []
    columns: list[int] = []
    for row, (sequence, parts) in enumerate(zip(sequences, spans, strict=True)):
        token_ids[row, : len(sequence)] = torch.tensor(sequence)
        for start, end in parts:
            rows.extend([row] * (end - start))
            columns.extend(range(start, end))
    return SequenceBatch(
        token_ids.to(device), torch.tensor(rows).to(device), torch.tensor(columns).to(device)
    )


def sampled_logprobs(
    model: "PreTrainedModel",
    batch: SequenceBatch,
    temperature: float = 1.0,
    entropies: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What the model gives each sampled token, and how sure it was there.

    Padding is on the right and attention is causal, so no sampled token ever sees it: no padding
    mask is needed.

    Returns:
        Log-probabilities [N] under softmax(logits / temperature), and if asked for the entropies
        [N] of the same, in nats, without gradient. Float32.
    """
    states = _states(model, batch)
    # In float32 also under autocast: what rounds here goes straight into the importance ratios.
    with torch.autocast(states.device.type, enabled=False):
        chosen = batch.token_ids[batch.rows, batch.columns]
        weight = model.lm_head.weight
        size = max(1, _LOGITS // weight.shape[0])
        if len(chosen) <= size:
            return _chosen_logprobs(states, weight, chosen, temperature, entropies)
        parts = [
            checkpoint(_chosen_logprobs, *part, temperature, entropies, use_reentrant=False)
            for part in zip(states.split(size), repeat(weight), chosen.split(size))
        ]
    logprobs, spreads = zip(*parts, strict=True)
    return torch.cat(logprobs), torch.cat(spreads) if entropies else None


def sampled_logits(model: "PreTrainedModel", batch: SequenceBatch) -> Tensor:
    """Logits, float32 [N, vocabulary], that predict each sampled token: for a few of them."""
    states = _states(model, batch)
    with torch.autocast(states.device.type, enabled=False):
        return F.linear(states, model.lm_head.weight.float())


def token_logprobs(logits: Tensor, batch: SequenceBatch, temperature: float = 1.0) -> Tensor:
    """Log-probability [N] of each sampled token under softmax(logits / temperature)."""
    chosen = batch.token_ids[batch.rows, batch.columns]
    return _of_tokens(logits / temperature, chosen)


def _states(model: "PreTrainedModel", batch: SequenceBatch) -> Tensor:
    """The last layer's states, float32 [N, hidden size], that predict each sampled token."""
    hidden = model.model(input_ids=batch.token_ids, use_cache=False).last_hidden_state
    return hidden[batch.rows, batch.columns - 1].float()


def _of_tokens(scaled: Tensor, chosen: Tensor) -> Tensor:
    picked = scaled.gather(1, chosen[:, None]).squeeze(1)
    return picked - torch.logsumexp(scaled, dim=1)


def _chosen_logprobs(
    states: Tensor, weight: Tensor, chosen: Tensor, temperature: float, entropies: bool
) -> tuple[Tensor, Tensor | None]:
    scaled = F.linear(states, weight.float()) / temperature
    logprobs = _of_tokens(scaled, chosen)
    return logprobs, token_entropies(scaled.detach()) if entropies else None


def token_entropies(logits: Tensor) -> Tensor:
    """Entropy [N], in nats, of softmax(logits)."""
    logp = torch.log_softmax(logits, dim=1)
    return -(logp.exp() * logp).sum(1)


def micro_batches(lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    """Split sequences into micro-batches of at most `token_budget` padded tokens.

    Sequences of similar length go together (ties keep their order); one longer than the budget
    goes alone. Returns indices into `lengths`.
    """
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    batches: list[list[int]] = []
    for index in order:
        if batches and (len(batches[-1]) + 1) * _rounded(lengths[index]) <= token_budget:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def _rounded(length: int) -> int:
    """`length` up to a whole multiple: few shapes let kernels and memory be used again."""
    return -(-length // _MULTIPLE) * _MULTIPLE
