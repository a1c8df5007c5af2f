"""What the log says of every batch, whatever the loss: how far the student is from the teacher."""

from torch import Tensor

from hgrpo.formulas.batch import Seen
from hgrpo.formulas.distillation import teacher_of, top1_agreement
from hgrpo.formulas.full_kl import entropy, forward_kl, reverse_kl
from hgrpo.formulas.topk import overlap_at_k
from hgrpo.sandbox.policies import taken


def diagnose(seen: Seen, overlap: int) -> dict[str, Tensor]:
    """Means over a batch, [S] each, in nats where they are divergences or entropies.

    Args:
        overlap: size of the top-k sets that are compared.
    """
    student, teacher = seen.table.detach(), teacher_of(seen)
    sampled = seen.rollout.behaviour - taken(teacher, seen.rollout.actions)
    columns = {
        "reverse_kl": reverse_kl(student, teacher),
        "forward_kl": forward_kl(student, teacher),
        "sampled_reverse_kl": sampled,
        "teacher_entropy": entropy(teacher),
        "student_entropy": entropy(student),
        "entropy_gap": entropy(student) - entropy(teacher),
        "top1_agreement": top1_agreement(student, teacher),
        f"overlap_at_{overlap}": overlap_at_k(student, teacher, overlap),
    }
    return {f"diag_{name}": seen.mean(values) for name, values in columns.items()}
