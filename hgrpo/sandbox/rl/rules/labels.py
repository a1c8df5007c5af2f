"""Rules that read the right answer. All but the cross-entropy are the original sandbox's own."""

from torch import Tensor

from hgrpo.learning.objectives.dg import dg_gates
from hgrpo.learning.objectives.pg import policy_gradient
from hgrpo.sandbox.policies import taken
from hgrpo.sandbox.rl.rule_settings import Correction
from hgrpo.sandbox.rl.rules.dg_token import above_chance
from hgrpo.sandbox.rollout import Seen, Term, seed_mean
from hgrpo.sandbox.rule import NoSettings


def cross_entropy(seen: Seen, own: NoSettings) -> Term:
    """CE: the mean of -log p of the right tokens, each after the right prefix."""
    labels = seen.rollout.labels[:, :, None, None]
    losses = -taken(seen.oracle, labels)
    keep = seen.rollout.keep.amax(-1)[..., None, None, None]
    return Term(seed_mean(losses, keep.expand_as(losses)))


def self_distill(seen: Seen, own: Correction) -> Term:
    """SelfDistillDG: DG on the correctness of each token, and cross-entropy under the same gate."""
    advantages = token_credit(seen)
    gates = dg_gates(seen.logprobs, advantages, own.eta)
    gradient = seen.mean(policy_gradient(seen.logprobs, gates * advantages))
    distilled = seen.mean(gates * seen.label_losses)
    metrics = {"gate_mean": seen.mean(gates), "distill_loss": distilled.detach()}
    return Term(gradient + own.alpha * distilled, metrics)


def token_credit(seen: Seen) -> Tensor:
    """SelfDistillDG's advantages, [S, N, K, M, T]."""
    return above_chance(seen, seen.correct * seen.scored)


def scope(seen: Seen, own: Correction) -> Term:
    """SCOPELite: DG, and cross-entropy on failures from their first wrong token on.

    The cross-entropy is a mean over the scored tokens of these suffixes.
    """
    gates = dg_gates(seen.logprobs, seen.advantages, own.eta)
    gradient = seen.mean(policy_gradient(seen.logprobs, gates * seen.advantages))
    wrong = (1.0 - seen.correct) * seen.scored
    suffix = wrong.cummax(-1).values * seen.scored * seen.rollout.taken
    correction = seed_mean(seen.label_losses, suffix)
    failed = wrong.amax(-1, keepdim=True).expand_as(wrong)
    metrics = {
        "gate_mean": seen.mean(gates),
        "correction_loss": correction.detach(),
        "first_error_frac": seen.mean(failed),
    }
    return Term(gradient + own.alpha * correction, metrics)
