"""Log-probabilities of whole trajectories: one sequence each, padded into micro-batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_MULTIPLE = 16


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
    sequences: Sequence[Sequence[int]], spans: Sequence[Sequence[tuple[int, int]]]
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
    return SequenceBatch(token_ids, torch.tensor(rows), torch.tensor(columns))


def sampled_logits(model: "PreTrainedModel", batch: SequenceBatch) -> Tensor:
    """Logits, float32 [N, vocabulary], that predict each sampled token.

    Padding is on the right and attention is causal, so no sampled token ever sees it: no padding
    mask is needed, and the vocabulary projection runs only where a token was sampled.
    """
    hidden = model.model(input_ids=batch.token_ids, use_cache=False).last_hidden_state
    # In float32 also under autocast: what rounds here goes straight into the importance ratios.
    with torch.autocast(hidden.device.type, enabled=False):
        return model.lm_head(hidden[batch.rows, batch.columns - 1].float())


def token_logprobs(logits: Tensor, batch: SequenceBatch, temperature: float = 1.0) -> Tensor:
    """Log-probability [N] of each sampled token under softmax(logits / temperature)."""
    scaled = logits / temperature
    chosen = batch.token_ids[batch.rows, batch.columns]
    picked = scaled.gather(1, chosen[:, None]).squeeze(1)
    return picked - torch.logsumexp(scaled, dim=1)


def token_entropies(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Entropy [N], in nats, of softmax(logits / temperature)."""
    logp = torch.log_softmax(logits / temperature, dim=1)
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
