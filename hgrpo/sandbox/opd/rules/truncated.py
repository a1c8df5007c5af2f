"""Divergences over a top-k set of the student's, the teacher's, or of both.

The set follows the current student, and is a constant for the gradient.
"""

from collections.abc import Callable

from torch import Tensor

from hgrpo.learning.objectives.topk_kl import (
    mass,
    renormalised_reverse_kl,
    tail_reverse_kl,
    truncated_forward_kl,
    truncated_reverse_kl,
)
from hgrpo.learning.objectives.topk_support import support_mask, top_k
from hgrpo.sandbox.opd.diagnostics import teacher_of, top1_agreement
from hgrpo.sandbox.opd.rule_settings import Truncation
from hgrpo.sandbox.rollout import Seen, Term

Divergence = Callable[[Tensor, Tensor, Tensor], Tensor]


def reverse(seen: Seen, own: Truncation) -> Term:
    """OPDTopKReverseKL: what lies outside the set costs nothing."""
    term = _term(seen, own, truncated_reverse_kl)
    return Term(term.loss, {"opd_topk_reverse_kl": term.loss.detach(), **term.metrics})


def renormalised(seen: Seen, own: Truncation) -> Term:
    """OPDTopKRenormalised: both distributions given the set."""
    return _term(seen, own, renormalised_reverse_kl)


def tail(seen: Seen, own: Truncation) -> Term:
    """OPDTopKTail: what lies outside the set counts as one token."""
    return _term(seen, own, tail_reverse_kl)


def forward(seen: Seen, own: Truncation) -> Term:
    """OPDTopKForwardKL: the terms of the set, weighted by the teacher."""
    return _term(seen, own, truncated_forward_kl)


def _term(seen: Seen, own: Truncation, divergence: Divergence) -> Term:
    """The mean divergence, and how much of both distributions the set holds.

    `support_has_best` is the share of prefixes whose set holds the teacher's best token. Where it
    does not, the support misses what is to be learned; where the student's mass falls, it leaks.
    """
    student, teacher = seen.table.detach(), teacher_of(seen)
    support = support_mask(student, teacher, own.k, own.support)
    return Term(
        seen.mean(divergence(seen.table, teacher, support)),
        {
            "student_topk_mass": seen.mean(mass(student, support)),
            "teacher_topk_mass": seen.mean(mass(teacher, support)),
            "topk_support_size": seen.mean(support.sum(-1).float()),
            "support_has_best": seen.mean((support & top_k(teacher, 1)).any(-1).float()),
            "top1_agreement": seen.mean(top1_agreement(student, teacher)),
        },
    )
