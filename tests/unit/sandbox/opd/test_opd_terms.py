"""The losses' gradients: equal where they must be, right on average."""

import pytest
import torch
from opd_runs import batch_of, every_rollout, gradient, settings

from hgrpo.sandbox.opd import acquire
from hgrpo.sandbox.opd.evaluate import diagnose
from hgrpo.sandbox.opd.train import Trainer

EXACT_WHEN_WHOLE = ["OPDTopKReverseKL", "OPDTopKRenormalised", "OPDTopKTail"]


@pytest.mark.parametrize("support", ["student", "teacher", "intersection"])
@pytest.mark.parametrize("method", EXACT_WHEN_WHOLE)
def test_a_top_k_set_of_all_tokens_gives_the_exact_reverse_kl(method, support):
    exact = Trainer(settings(task="soft_reversal"))
    batch = batch_of(exact)
    rule = {"k": exact.settings.actions, "support": support}
    whole = gradient(Trainer(settings(method, rule, task="soft_reversal")), batch)
    assert torch.allclose(whole, gradient(exact, batch), rtol=1e-4, atol=1e-6)
    smaller = rule | {"k": 2}
    other = gradient(Trainer(settings(method, smaller, task="soft_reversal")), batch)
    assert not torch.allclose(other, gradient(exact, batch), rtol=1e-2, atol=1e-3)


def test_over_the_students_actions_opdpgs_gradient_is_that_of_the_reverse_kl():
    small = {"seq_len": 1, "seeds": (0,)}
    sampled, exact = (Trainer(settings(name, **small)) for name in ("OPDPG", "OPDReverseKL"))
    batch, chances = every_rollout(sampled.task, sampled.policy, sampled.weights)

    def mean_gradient(trainer):
        trainer.learner.weights = sampled.weights.expand(len(chances), -1)
        return (chances.unsqueeze(1) * gradient(trainer, batch)).sum(0)

    # Every input stands in the batch once for each action, with chances that add up to 1.
    right = mean_gradient(exact)
    assert right.abs().max() > 0.1
    assert torch.allclose(mean_gradient(sampled), right, rtol=1e-3, atol=1e-5)


def test_opdpgs_clip_acts_only_off_the_policy_that_sampled():
    def clipped(clip, lag):
        trainer = Trainer(settings("OPDPG", {"clip": clip}))
        batch = batch_of(trainer)
        trainer.learner.weights = trainer.weights + lag * torch.ones_like(trainer.weights)
        return gradient(trainer, batch)

    assert clipped(0.01, 0.0).equal(clipped(10.0, 0.0))
    assert not torch.allclose(clipped(0.01, 0.02), clipped(10.0, 0.02), rtol=1e-2, atol=1e-3)


def test_diagnostics_by_hand():
    trainer = Trainer(settings(vocab_size=2, seq_len=1, seeds=(0,), teacher_epsilon=0.5))
    batch = batch_of(trainer)
    seen = acquire.see(batch, trainer.policy, trainer.weights)
    columns = {name: value.item() for name, value in diagnose(seen, 2).items()}
    student = seen.table[0, :, 0, 0, 0].double()
    totals = dict.fromkeys(columns, 0.0)
    for row, label, action in zip(
        student, batch.labels[0, :, 0], batch.actions.flatten(), strict=True
    ):
        teacher = torch.full((3,), 0.25, dtype=torch.float64)
        teacher[label] = 0.5
        p, q = row.exp(), teacher
        best = row.argsort(descending=True)[:2].tolist()
        totals["diag_reverse_kl"] += (p * (p / q).log()).sum()
        totals["diag_forward_kl"] += (q * (q / p).log()).sum()
        totals["diag_sampled_reverse_kl"] += row[action] - q[action].log()
        totals["diag_teacher_entropy"] -= (q * q.log()).sum()
        totals["diag_student_entropy"] -= (p * p.log()).sum()
        totals["diag_top1_agreement"] += float(best[0] == label)
        # The teacher's second token is either of two.
        totals["diag_overlap_at_2"] += ((label in best) + 0.5 * (2 - (label in best))) / 2
    means = {name: float(total) / len(student) for name, total in totals.items()}
    means["diag_entropy_gap"] = means["diag_student_entropy"] - means["diag_teacher_entropy"]
    assert columns == pytest.approx(means, abs=1e-5)
