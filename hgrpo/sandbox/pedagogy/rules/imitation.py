"""The student imitates rollouts of the teacher."""

import torch

from hgrpo.learning.objectives.gated_imitation import surprisal_gates, weighted_imitation
from hgrpo.sandbox.pedagogy.rule_settings import Lesson
from hgrpo.sandbox.rollout import seed_mean
from hgrpo.sandbox.seen import Seen, Term


def imitate(seen: Seen, own: Lesson) -> Term:
    """Cross-entropy to the teacher's tokens, gated or plain, over all rollouts or right ones."""
    rollout = seen.rollout
    keep = rollout.keep * rollout.clean if own.imitated == "correct" else rollout.keep
    if own.imitation == "plain":
        losses = weighted_imitation(seen.logprobs, torch.ones_like(seen.logprobs))
        loss = seed_mean(losses.squeeze(-1), keep)
        return Term(loss, {"sft_loss": loss.detach()})
    gates = surprisal_gates(seen.logprobs, own.kappa, own.gamma)
    loss = seed_mean(weighted_imitation(seen.logprobs, gates).squeeze(-1), keep)
    metrics = {
        "assim_loss": loss.detach(),
        "assim_gate_mean": seen.mean(gates),
        "assim_logp_mean": seen.mean(seen.logprobs.detach()),
    }
    return Term(loss, metrics)
