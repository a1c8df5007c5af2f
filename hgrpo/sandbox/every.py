"""All token sequences of a given length, and their prefix tree.

A net that scores the tree computes shared prefixes once. For example, the nine sequences of two
tokens out of three share three nodes, one for each first token.
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
    """All proper, non-empty prefixes of the sequences listed by `every`.

    Attributes:
        tokens: the last token of each of the M prefixes, int64 [M].
        depths: number of tokens before it, int64 [M].
        hidden: attention mask, bool [M, M]; False where node j is node i or one of its prefixes.
        paths: parent node of each token of each sequence, int64 [O, length]; 0 is the root, and
            nodes count from 1.
    """

    tokens: Tensor
    depths: Tensor
    hidden: Tensor
    paths: Tensor

    @classmethod
    def of(cls, vocabulary: int, length: int) -> "Tree":
        """Build the tree of the sequences `every(vocabulary, length)`."""
        counts = [vocabulary**size for size in range(1, length)]
        # Prefixes of one length are numbered so that the digits of a number are their tokens.
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
