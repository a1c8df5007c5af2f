"""Rules that read the right answer. All but the cross-entropy are the original sandbox's own."""

from pydantic import Field

from hgrpo.formulas.batch import Seen, Term, seed_mean, taken
from hgrpo.formulas.dg import Gate, dg_gates
from hgrpo.formulas.dg_variants import above_chance
from hgrpo.formulas.pg import policy_gradient
from hgrpo.formulas.rule import Rule
from hgrpo.formulas.tensors import Tensor

_ANSWERS = "the right answer at every token"


class CE(Rule):
    """The mean of -log p of the right tokens, each after the right prefix.

    Supervised learning on the right answers. It reads no reward.
    """

    agents_lack = _ANSWERS
    oracle = True

    def term(self, seen: Seen) -> Term:
        labels = seen.rollout.labels[:, :, None, None]
        losses = -taken(seen.oracle, labels)
        keep = seen.rollout.keep.amax(-1)[..., None, None, None]
        return Term(seed_mean(losses, keep.expand_as(losses)))


class Correction(Gate):
    """The weight of a cross-entropy beside DG."""

    agents_lack = _ANSWERS
    needs = ("sequences", "clean")

    alpha: float = Field(0.5, ge=0, description="weight of the cross-entropy to the labels")


class SelfDistillDG(Correction):
    """DG on the correctness of each token, and cross-entropy under the same gate.

    DG's gate on the original's own credit and correction. The right answer stands in for a model
    that corrects.
    """

    def term(self, seen: Seen) -> Term:
        advantages = self.token_credit(seen)
        gates = dg_gates(seen.logprobs, advantages, self.eta)
        gradient = seen.mean(policy_gradient(seen.logprobs, gates * advantages))
        distilled = seen.mean(gates * seen.label_losses)
        metrics = {"gate_mean": seen.mean(gates), "distill_loss": distilled.detach()}
        return Term(gradient + self.alpha * distilled, metrics)

    def token_credit(self, seen: Seen) -> Tensor:
        return above_chance(seen, seen.correct * seen.scored)


class SCOPELite(Correction):
    """DG, and cross-entropy on failures from their first wrong token on.

    The original's own correction. The right answer stands in for a model that corrects. The
    cross-entropy is a mean over the scored tokens of these suffixes.
    """

    def term(self, seen: Seen) -> Term:
        gates = self.gates(seen)
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
        return Term(gradient + self.alpha * correction, metrics)
