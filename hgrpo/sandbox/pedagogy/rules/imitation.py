"""The student imitates rollouts of the teacher."""

import torch
from torch import Tensor

from hgrpo.learning.objectives.gated_imitation import surprisal_gates, weighted_imitation
from hgrpo.sandbox.pedagogy.rule_settings import Lesson, Taught
from hgrpo.sandbox.rollout import Seen, Term, seed_mean


def imitate(seen: Seen, own: Lesson) -> Term:
    """Cross-entropy to the teacher's tokens, gated or plain, over all rollouts or right ones."""
    if own.imitation == "plain":
        return imitate_plainly(seen, own)
    gates = surprisal_gates(seen.logprobs, own.kappa, own.gamma)
    loss = _loss(seen, gates, own)
    metrics = {
        "assim_loss": loss.detach(),
        "assim_gate_mean": seen.mean(gates),
        "assim_logp_mean": seen.mean(seen.logprobs.detach()),
    }
    return Term(loss, metrics)


def imitate_plainly(seen: Seen, own: Taught) -> Term:
    """Cross-entropy to the teacher's tokens, over all rollouts or right ones."""
    loss = _loss(seen, torch.ones_like(seen.logprobs), own)
    return Term(loss, {"sft_loss": loss.detach()})


def _loss(seen: Seen, weights: Tensor, own: Taught) -> Tensor:
    """Cross-entropy [S] to the rollouts that are imitated, whose tokens have `weights`."""
    rollout = seen.rollout
    keep = rollout.keep * rollout.clean if own.imitated == "correct" else rollout.keep
    return seed_mean(weighted_imitation(seen.logprobs, weights).squeeze(-1), keep)
