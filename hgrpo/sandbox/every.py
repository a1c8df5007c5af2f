"""Every sequence of tokens, and the tree that they form.

Sequences that begin with the same tokens share the nodes of these tokens, so a net that scores the
tree computes them once. For example, the nine sequences of two tokens out of three share three
nodes, one for each first token.
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
    """All beginnings of the sequences that `every` lists, the root and whole sequences left out.

    Attributes:
        tokens: the last token of each of the M beginnings, int64 [M].
        depths: how many tokens come before it, int64 [M].
        hidden: bool [M, M]; False where node j is node i or a beginning of it.
        paths: the node after which each token of each sequence comes, int64 [O, length]; 0 is the
            root, and the nodes count from 1.
    """

    tokens: Tensor
    depths: Tensor
    hidden: Tensor
    paths: Tensor

    @classmethod
    def of(cls, vocabulary: int, length: int) -> "Tree":
        """Build the tree of the sequences that `every(vocabulary, length)` lists."""
        counts = [vocabulary**size for size in range(1, length)]
        # Beginnings of one size are numbered, and the digits of the number are their tokens.
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
