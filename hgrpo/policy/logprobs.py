"""Log-probabilities of the sampled tokens of trajectories, in padded micro-batches.

Logits are computed in chunks, and only at positions that predict sampled tokens. The backward pass
recomputes each chunk, so that only one chunk of logits is in memory at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hgrpo.policy.head import Head, decode

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from hgrpo.policy.policy import Policy

_MULTIPLE = 16
# Maximum number of logits in a chunk: 256 MiB of float32.
_LOGITS = 2**26


@dataclass(frozen=True)
class SequenceBatch:
    """Right-padded sequences and the positions of their sampled tokens.

    Attributes:
        token_ids: int64 [B, L].
        rows, columns: int64 [N], the position of each sampled token, row by row; column >= 1.
    """

    token_ids: Tensor
    rows: Tensor
    columns: Tensor


def make_batch(
    sequences: Sequence[Sequence[int]],
    spans: Sequence[Sequence[tuple[int, int]]],
    device: torch.device | None = None,
) -> SequenceBatch:
    """Pad sequences to a common length; `spans` has each sequence's sampled ranges [start, end)."""
    longest = _rounded(max(map(len, sequences)))
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
    entropies: bool | Literal["differentiable"] = False,
) -> tuple[Tensor, Tensor | None]:
    """Log-probability of each sampled token; with `entropies`, also the entropy per token.

    Padding is on the right and attention is causal, so no padding mask is needed.

    Returns:
        Log-probabilities [N] under softmax(logits / temperature), and the entropies [N] of this
        distribution in nats, or None without `entropies`. Entropies have a gradient only if
        `entropies` is "differentiable". Both tensors are float32.
    """
    states, head = _states(model, batch)
    # Compute in float32 even under autocast, because rounding would distort importance ratios.
    with torch.autocast(states.device.type, enabled=False):
        chosen = batch.token_ids[batch.rows, batch.columns]
        size = max(1, _LOGITS // head.vocabulary)
        if len(chosen) <= size:
            return _chosen_logprobs(states, head, chosen, temperature, entropies)
        parts = [
            checkpoint(
                _chosen_logprobs, part, head, tokens, temperature, entropies, use_reentrant=False
            )
            for part, tokens in zip(states.split(size), chosen.split(size), strict=True)
        ]
    logprobs, spreads = zip(*parts, strict=True)
    return torch.cat(logprobs), torch.cat(spreads) if entropies else None


@torch.no_grad()
def reply_entropies(
    policy: "Policy",
    token_ids: Sequence[int],
    spans: Sequence[tuple[int, int]],
    temperature: float = 1.0,
) -> list[np.ndarray]:
    """Entropy of the policy at each token of each reply, in nats; one float64 array per reply.

    By the chain rule, the expected sum over a reply is the entropy of the reply given the preceding
    text. The conversation is processed in a forward pass of its own, so that results do not depend
    on other conversations.

    Args:
        token_ids: the whole conversation.
        spans: the token range [start, end) of each reply.
        temperature: the temperature at which the replies were sampled.
    """
    if not spans:
        return []
    batch = make_batch([token_ids], [spans], policy.device)
    _, entropies = sampled_logprobs(policy.causal_lm, batch, temperature, entropies=True)
    values = entropies.double().cpu().numpy()
    return np.split(values, np.cumsum([end - start for start, end in spans])[:-1])


def sampled_logits(model: "PreTrainedModel", batch: SequenceBatch) -> Tensor:
    """Logits at the positions before sampled tokens, float32 [N, vocabulary]; N must be small."""
    states, head = _states(model, batch)
    return head(states)


def token_logprobs(logits: Tensor, batch: SequenceBatch, temperature: float = 1.0) -> Tensor:
    """Log-probability [N] of each sampled token under softmax(logits / temperature)."""
    chosen = batch.token_ids[batch.rows, batch.columns]
    return _of_tokens(logits / temperature, chosen)


def micro_batches(lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    """Indices of sequences, grouped into micro-batches of at most `token_budget` tokens.

    Sequences of similar length share a micro-batch; equal lengths keep their order. A sequence
    longer than the budget gets a micro-batch of its own.
    """
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batches and (len(batches[-1]) + 1) * _rounded(lengths[index]) <= token_budget:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def sampled_states(model: "PreTrainedModel", batch: SequenceBatch) -> Tensor:
    """Last hidden states at the positions before sampled tokens, float32 [N, hidden size]."""
    return _states(model, batch)[0]


def _states(model: "PreTrainedModel", batch: SequenceBatch) -> tuple[Tensor, Head]:
    hidden, head = decode(model, batch.token_ids)
    return hidden[batch.rows, batch.columns - 1].float(), head


def _chosen_logprobs(
    states: Tensor,
    head: Head,
    chosen: Tensor,
    temperature: float,
    entropies: bool | Literal["differentiable"],
) -> tuple[Tensor, Tensor | None]:
    scaled = head(states) / temperature
    logprobs = _of_tokens(scaled, chosen)
    if not entropies:
        return logprobs, None
    logp = torch.log_softmax(scaled if entropies == "differentiable" else scaled.detach(), dim=1)
    return logprobs, -(logp.exp() * logp).sum(1)


def _of_tokens(scaled: Tensor, chosen: Tensor) -> Tensor:
    picked = scaled.gather(1, chosen[:, None]).squeeze(1)
    return picked - torch.logsumexp(scaled, dim=1)


def _rounded(length: int) -> int:
    """Round `length` up so that torch can reuse memory and kernels for fewer shapes."""
    return -(-length // _MULTIPLE) * _MULTIPLE
