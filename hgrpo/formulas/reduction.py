"""Weights for the reduction of a loss over tokens."""

from typing import Literal

from hgrpo.formulas.tensors import Tensor, torch

Reduction = Literal["token", "sequence", "constant"]


def token_weights(
    sequence_lengths: Tensor, reduction: Reduction, constant: int | None = None
) -> Tensor:
    """Weights [N] of the per-token terms. The loss is the weighted sum.

    - `token` weights all tokens equally, so that long trajectories have more weight. This is the
      token-level loss of DAPO (https://arxiv.org/abs/2503.14476). The weights sum to 1.
    - `sequence` weights all trajectories equally. This is the sample-level loss of GRPO (Shao et
      al. 2024, "DeepSeekMath", https://arxiv.org/abs/2402.03300). The weights sum to 1.
    - `constant` gives every token the weight 1 / (B * constant). This is the loss of Dr. GRPO (Liu
      et al. 2025, "Understanding R1-Zero-Like Training", https://arxiv.org/abs/2503.20783).

    Args:
        sequence_lengths: int64 [B], number of sampled tokens of each sequence in the minibatch. Do
            not pass single micro-batches, because the loss would depend on their sizes.
        constant: the divisor of the reduction `constant`.

    Raises:
        ValueError: `sequence_lengths` is not one-dimensional.
    """
    if sequence_lengths.dim() != 1:
        raise ValueError(f"sequence_lengths: expected [B], got {tuple(sequence_lengths.shape)}")
    lengths = sequence_lengths.double()
    if reduction == "token":
        weights = torch.ones_like(lengths) / lengths.sum()
    elif reduction == "constant":
        weights = torch.full_like(lengths, 1.0 / (len(lengths) * constant))
    else:
        weights = 1.0 / (lengths * (lengths > 0).sum())
    return torch.repeat_interleave(weights, sequence_lengths).float()
