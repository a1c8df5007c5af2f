"""KL divergences that look at a part of the vocabulary only.

Arguments are log-probs [..., V] and a mask of the support S, bool [..., V]; results lose the last
axis. With S the whole vocabulary, the first three are the reverse KL and the last is the forward
KL. They differ in what they make of the rest of the vocabulary:

- The truncated one ignores it, so the student lowers the loss by moving probability there. That
  probability leaks.
- The renormalised one compares the two distributions given S. It neither sees nor moves the
  probability of S.
- The one with a tail counts the rest as one more token, so a leak costs.
- The forward one weighs by the teacher. It pulls the student to S and never pushes it away.

The truncated reverse form is the original sandbox's own. The other three are ours; they tell its
faults apart.
"""

import torch
from torch import Tensor

from hgrpo.learning.objectives.full_kl import reverse_kl
from hgrpo.learning.objectives.shapes import check_shapes

# Stands for log 0. Infinity would make the gradient NaN where nothing or everything is in S.
_LOG_ZERO = -1e9


def truncated_reverse_kl(student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
    """sum over S of p (log p - log q), which may be below 0."""
    check_shapes(student, teacher, support)
    return (support * student.exp() * (student - teacher)).sum(-1)


def renormalised_reverse_kl(student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
    """KL(p given S || q given S); 0 for an empty S."""
    check_shapes(student, teacher, support)
    given = [_within(each, support).log_softmax(-1) for each in (student, teacher)]
    return truncated_reverse_kl(*given, support)


def tail_reverse_kl(student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
    """KL(p || q) where all tokens outside S are one token; a lower bound of the reverse KL."""
    check_shapes(student, teacher, support)
    rest = [_within(each, ~support).logsumexp(-1, keepdim=True) for each in (student, teacher)]
    inside = truncated_reverse_kl(student, teacher, support)
    return inside + reverse_kl(*rest)


def truncated_forward_kl(student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
    """sum over S of q (log q - log p), which may be below 0."""
    return truncated_reverse_kl(teacher, student, support)


def mass(logprobs: Tensor, support: Tensor) -> Tensor:
    """The probability of S, [...]."""
    check_shapes(logprobs, support)
    return (support * logprobs.exp()).sum(-1)


def _within(logprobs: Tensor, support: Tensor) -> Tensor:
    return torch.where(support, logprobs, _LOG_ZERO)
