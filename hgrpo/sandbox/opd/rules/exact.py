"""The exact divergence at every sampled prefix."""

from hgrpo.learning.objectives.full_kl import entropy, reverse_kl
from hgrpo.sandbox.opd.diagnostics import teacher_of, top1_agreement
from hgrpo.sandbox.rollout import Seen, Term
from hgrpo.sandbox.rule import NoSettings


def reverse(seen: Seen, own: NoSettings) -> Term:
    """OPDReverseKL: the exact reverse KL to the teacher after every prefix."""
    student, teacher = seen.table, teacher_of(seen)
    loss = seen.mean(reverse_kl(student, teacher))
    return Term(
        loss,
        {
            "opd_reverse_kl": loss.detach(),
            "teacher_entropy": seen.mean(entropy(teacher)),
            "student_entropy": seen.mean(entropy(student.detach())),
            "top1_agreement": seen.mean(top1_agreement(student, teacher)),
        },
    )
