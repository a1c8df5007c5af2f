"""Variants of DG for the sandbox, with other advantages, weights, samples or losses.

They come from the original sandbox, except for `CE` and the selection of samples in `Kondo`.
"""

from pydantic import Field

from hgrpo.formulas.batch import Rollout, Seen, Term, seed_mean, taken
from hgrpo.formulas.dg import DG, Gate, delight, dg_gates, dg_weights
from hgrpo.formulas.distillation import rewards_to_go
from hgrpo.formulas.full_kl import collision_probability
from hgrpo.formulas.pg import policy_gradient, weighted
from hgrpo.formulas.rule import Rule
from hgrpo.formulas.tensors import Tensor, torch

_ANSWERS = "the correct answer at every token"
_HALVINGS = 40
# At a distance of 20 temperatures from its centre, a sigmoid is within 3e-9 of 0 or 1.
_FLAT = 20.0


def mean_to_go(correct: Tensor, scored: Tensor) -> Tensor:
    """Mean of `correct` over the scored positions from each position to the end, [..., T].

    The mean is 0 if there are no such positions.

    Args:
        correct: float [..., T], 1 for a correct token.
        scored: float [T], 1 for positions that affect the reward.
    """
    return rewards_to_go(correct * scored) / rewards_to_go(scored).clamp(min=1.0)


class DGToken(Gate):
    """DG whose advantage is the mean correctness of a token and all later tokens, minus a baseline.

    This advantage comes from the original sandbox and requires the correctness of each token. The
    baseline is the collision probability, or 0 at positions that do not affect the reward. Tokens
    at these positions are always reinforced, because the mean correctness is at least 0.
    """

    agents_lack = "a reward for every token"
    needs = ("token_rewards", "clean")

    def term(self, seen: Seen) -> Term:
        advantages = self.token_credit(seen)
        gates = dg_gates(seen.logprobs, advantages, self.eta)
        to_go = mean_to_go(seen.correct, seen.scored)
        return weighted(seen, gates * advantages, gate_mean=gates, rtg_mean=to_go)

    def token_credit(self, seen: Seen) -> Tensor:
        return above_chance(seen, mean_to_go(seen.correct, seen.scored))


def above_chance(seen: Seen, credit: Tensor) -> Tensor:
    """Subtract the collision probability from credit [S, N, K, M, T] at scored positions."""
    return credit - torch.where(seen.scored > 0, collision_probability(seen.table), 0.0)


def entropy_guard(logprobs: Tensor, advantages: Tensor, actions: int, strength: float) -> Tensor:
    """1 - strength clip(p - 1 / actions, 0, 1) where A > 0, and 1 elsewhere; no gradient.

    Tokens with A > 0 are reinforced less if they are already more likely than chance. `actions` is
    the size of the vocabulary. The formula comes from the original sandbox.
    """
    excess = (logprobs.detach().exp() - 1.0 / actions).clamp(0.0, 1.0)
    return torch.where(advantages > 0, 1.0 - strength * excess, torch.ones_like(excess))


class DGEntropyGuard(Gate):
    """DG with smaller weights for likely tokens with a positive advantage.

    The factor that reduces a weight depends only on the probability of the sampled token.
    """

    strength: float = Field(
        0.5, ge=0, le=1, description="weight reduction for a success with probability 1"
    )

    def term(self, seen: Seen) -> Term:
        gates, actions = self.gates(seen), seen.table.shape[-1]
        guard = entropy_guard(seen.logprobs, seen.advantages, actions, self.strength)
        weights = guard * gates * seen.advantages
        return weighted(seen, weights, gate_mean=gates, entropy_guard_mean=guard)


def freshness(age: Tensor, decay: float) -> Tensor:
    """exp(-decay age), where `age` is the number of training steps since sampling."""
    return torch.exp(-decay * age.float())


class FreshDG(Gate):
    """DG with a weight that decays with the age of the batch.

    The decay comes from the original sandbox.
    """

    needs = ("ages", "ages_vary")

    decay: float = Field(0.02, ge=0, description="decay rate; the weight is exp(-decay * age)")

    def term(self, seen: Seen) -> Term:
        fresh = seen.per_seed(freshness(seen.rollout.age, self.decay))
        gates = self.gates(seen)
        return weighted(
            seen,
            fresh * gates * seen.advantages,
            gate_mean=gates,
            freshness_weight=fresh,
            batch_age=seen.per_seed(seen.rollout.age.float()),
        )


def uncertain_gates(
    logprobs: Tensor, advantages: Tensor, uncertainty: Tensor, eta: float, scale: float
) -> Tensor:
    """sigmoid((A s - scale U) / eta), where `uncertainty` U is a standard deviation of rewards."""
    return torch.sigmoid((delight(logprobs, advantages) - scale * uncertainty) / eta)


def filtered_dg_weights(
    logprobs: Tensor, advantages: Tensor, uncertainty: Tensor, eta: float, threshold: float
) -> Tensor:
    """The weights of `dg.dg_weights` where `uncertainty` <= `threshold`, and 0 elsewhere."""
    return dg_weights(logprobs, advantages, eta) * (uncertainty <= threshold)


def shrunk_advantages(advantages: Tensor, uncertainty: Tensor, scale: float) -> Tensor:
    """advantages / (1 + scale * uncertainty)."""
    return advantages / (1.0 + scale * uncertainty)


class Doubt(Gate):
    """Base class of DG variants that use the standard deviation of rewards as uncertainty."""

    scale: float = Field(1.0, ge=0, description="weight of the standard deviation of rewards")


class UncertaintyDG(Doubt):
    """DG with the standard deviation of rewards subtracted inside the gate.

    As in the original sandbox, this standard deviation measures uncertainty, without a model.
    """

    def term(self, seen: Seen) -> Term:
        doubt = uncertainty(seen)
        gates = uncertain_gates(seen.logprobs, seen.advantages, doubt, self.eta, self.scale)
        return weighted(seen, gates * seen.advantages, gate_mean=gates, uncertainty_mean=doubt)


class RewardVarianceDG(Doubt):
    """DG with advantages divided by 1 + scale * (standard deviation of rewards).

    The divisor comes from the original sandbox.
    """

    def term(self, seen: Seen) -> Term:
        doubt = uncertainty(seen)
        shrunk = shrunk_advantages(seen.advantages, doubt, self.scale)
        gates = dg_gates(seen.logprobs, shrunk, self.eta)
        return weighted(seen, gates * shrunk, gate_mean=gates, uncertainty_mean=doubt)


class FilteredDG(Gate):
    """DG that excludes rollouts for which the standard deviation of rewards exceeds a threshold.

    The filter comes from the original sandbox.
    """

    needs = ("filter_acts", "filter_compares")

    threshold: float = Field(
        0.5, ge=0, description="maximum standard deviation of rewards with a gradient"
    )

    def term(self, seen: Seen) -> Term:
        doubt = uncertainty(seen)
        surprising = (seen.logprobs, seen.advantages, doubt)
        return weighted(
            seen,
            filtered_dg_weights(*surprising, self.eta, self.threshold),
            gate_mean=self.gates(seen),
            uncertainty_mean=doubt,
            kept_frac=(doubt <= self.threshold).float(),
        )


def uncertainty(seen: Seen) -> Tensor:
    """Standard deviation of the rewards in a group or, without groups, in a seed's batch."""
    rewards = seen.rollout.rewards
    if seen.rollout.group_size > 1:
        return seen.over_tokens(rewards.std(-1, correction=0, keepdim=True).expand_as(rewards))
    return seen.per_seed(rewards.flatten(1).std(1, correction=0))


def keep_probabilities(delight: Tensor, keep: float, eta: float) -> Tensor:
    """Probability sigmoid((delight - price) / eta) that each sample is kept, [..., B].

    The price is the number for which the mean probability is `keep`. It is found by 40 steps of
    bisection. Source: https://arxiv.org/abs/2603.20526.

    Args:
        delight: float [..., B], one value per sample.
        keep: expected fraction of samples that are kept, in (0, 1]. If it is 1, all are kept.
    """
    if keep == 1.0:
        return torch.ones_like(delight)
    low = delight.amin(-1, keepdim=True) - _FLAT * eta
    high = delight.amax(-1, keepdim=True) + _FLAT * eta
    for _ in range(_HALVINGS):
        price = (low + high) / 2
        too_many = torch.sigmoid((delight - price) / eta).mean(-1, keepdim=True) > keep
        low, high = torch.where(too_many, price, low), torch.where(too_many, high, price)
    return torch.sigmoid((delight - (low + high) / 2) / eta)


def kondo_keep(delight: Tensor, draws: Tensor, keep: float, eta: float) -> Tensor:
    """Randomly select samples: 1 for samples that are kept, else 0, float [..., B].

    A sample is kept if its entry in `draws` (uniform in [0, 1)) is below its probability from
    `keep_probabilities`. The sample with the highest delight is always kept.
    """
    passed = draws < keep_probabilities(delight, keep, eta)
    best = delight == delight.amax(-1, keepdim=True)
    first = best & (best.cumsum(-1) == 1)
    return (passed | first).float()


class Kondo(DG):
    """DG on a random selection of rollouts that favours high delight (advantage times surprisal).

    Kept from the paper: the random selection. The delight of a rollout is the maximum over its
    tokens under the behaviour policy. To compute the delight, the advantages are rewards minus the
    collision probability, regardless of the run's `baseline`.
    """

    agents = False
    needs = ("two_survivors",)
    screens = True

    keep: float = Field(0.5, gt=0, le=1, description="expected fraction of samples that pass")

    def screen(self, rollout: Rollout, uniform: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        advantages = rollout.rewards[..., None, None] - rollout.collision
        best = delight(rollout.behaviour, advantages).flatten(3).amax(-1).flatten(1)
        chances = keep_probabilities(best, self.keep, self.eta)
        keep = kondo_keep(best, uniform, self.keep, self.eta)
        metrics = {"kept_frac": keep.mean(1), "gate_prob_mean": chances.mean(1)}
        return keep.view_as(rollout.rewards), metrics


class CE(Rule):
    """Cross-entropy to the correct tokens, with teacher forcing.

    This is supervised learning on the correct answers, without rewards.
    """

    agents_lack = _ANSWERS
    oracle = True

    def term(self, seen: Seen) -> Term:
        labels = seen.rollout.labels[:, :, None, None]
        losses = -taken(seen.oracle, labels)
        keep = seen.rollout.keep.amax(-1)[..., None, None, None]
        return Term(seed_mean(losses, keep.expand_as(losses)))


class Correction(Gate):
    """Base class of rules that add a cross-entropy to DG."""

    agents_lack = _ANSWERS
    needs = ("sequences", "clean")

    alpha: float = Field(0.5, ge=0, description="weight of the cross-entropy to the labels")


class SelfDistillDG(Correction):
    """DG with an advantage per token, its correctness, plus a cross-entropy with the same gates.

    Advantages and cross-entropy come from the original sandbox. The targets of the cross-entropy
    are the correct answers, not answers corrected by a model.
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
    """DG, plus a cross-entropy on each failed rollout, starting at its first wrong token.

    The cross-entropy comes from the original sandbox. Its targets are the correct answers, not
    answers corrected by a model. It is averaged over the first wrong token and all later tokens,
    except for positions that do not affect the reward.
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
