"""Enumerates all token sequences of a given length, and builds their prefix tree.

A net that processes the tree computes each prefix only once, even if many sequences share it. For
example, the nine sequences of two tokens from a vocabulary of three have only three prefixes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


def every(vocabulary: int, length: int) -> Tensor:
    """All sequences of `length` tokens below `vocabulary`, int64 [vocabulary^length, length]."""
    places = vocabulary ** torch.arange(length - 1, -1, -1)
    return torch.arange(vocabulary**length).unsqueeze(-1) // places % vocabulary


@dataclass(frozen=True)
class Tree:
    """The tree of all proper, non-empty prefixes of the sequences in `every`.

    Attributes:
        tokens: last token of each of the M prefixes, int64 [M].
        depths: number of tokens before this last token, int64 [M].
        hidden: attention mask, bool [M, M]. [i, j] is False if prefix j is the start of prefix i or
            equal to it, and True otherwise.
        paths: for each token of each of the O sequences, the index of the prefix before the token,
            int64 [O, length]. Index 0 is the empty prefix, and 1 to M are the prefixes in `tokens`.
    """

    tokens: Tensor
    depths: Tensor
    hidden: Tensor
    paths: Tensor

    @classmethod
    def of(cls, vocabulary: int, length: int) -> "Tree":
        """Build the tree of the sequences `every(vocabulary, length)`."""
        counts = [vocabulary**size for size in range(1, length)]
        # Prefixes of the same length are numbered from 0. The tokens of a prefix are the digits of
        # its number in base `vocabulary`.
        numbers = torch.cat([torch.arange(count) for count in [*counts, 0]])
        depths = torch.arange(length - 1).repeat_interleave(torch.tensor(counts, dtype=torch.int64))
        apart = depths.unsqueeze(1) - depths
        starts = numbers.unsqueeze(1) // vocabulary ** apart.clamp(min=0)
        first = torch.tensor([0, *(1 + sum(counts[:size]) for size in range(length - 1))])
        cut = vocabulary ** torch.arange(length, 0, -1)
        return cls(
            tokens=numbers % vocabulary,
            depths=depths,
            hidden=(apart < 0) | (starts != numbers),
            paths=first + torch.arange(vocabulary**length).unsqueeze(1) // cut,
        )
