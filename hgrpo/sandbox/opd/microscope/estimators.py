"""Estimators of two gradients, as losses [S] of a batch.

With the student p, the teacher q, and KL_t the reverse KL at the prefix before token t:

- The token objective is the mean over t of E[KL_t], with prefixes sampled from p but without
gradient through the sampling. OPDReverseKL uses this objective. - The sequence objective is KL(p(y
| x) || q(y | x)) = E[sum over t of KL_t], with its full gradient.

Each estimator is unbiased for the gradient of its own objective. The first three have the
original's names.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from hgrpo.formulas.batch import Seen
from hgrpo.formulas.distillation import rewards_to_go, teacher_of, teacher_rewards
from hgrpo.formulas.full_kl import reverse_kl
from hgrpo.formulas.group import leave_one_out
from hgrpo.formulas.pg import policy_gradient
from hgrpo.sandbox.policies import taken

Objective = Literal["token", "sequence"]
# Axis of a batch's inputs.
_INPUTS = 1


@dataclass(frozen=True)
class Estimator:
    """A loss whose gradient estimates the gradient of its objective."""

    loss: Callable[[Seen], Tensor]
    objective: Objective


def sequence_pg(seen: Seen) -> Tensor:
    """Policy gradient with the reward-to-go of each token, summed over tokens."""
    return _summed(seen, policy_gradient(seen.logprobs, rewards_to_go(_rewards(seen))))


def sequence_pg_loo(seen: Seen) -> Tensor:
    """`sequence_pg` with a leave-one-out baseline per position."""
    return _summed(seen, policy_gradient(seen.logprobs, _centred(rewards_to_go(_rewards(seen)))))


def sequence_exact_rewards(seen: Seen) -> Tensor:
    """Exact gradient of each token's KL, with the centred exact KL of later tokens as reward.

    Only the prefixes are sampled.
    """
    exact = reverse_kl(seen.table, teacher_of(seen))
    later = rewards_to_go(exact.detach()) - exact.detach()
    return _summed(seen, exact + policy_gradient(seen.logprobs, -_centred(later)))


def token_pg(seen: Seen) -> Tensor:
    """Policy gradient with the immediate reward of each token."""
    return seen.mean(policy_gradient(seen.logprobs, _rewards(seen)))


def token_pg_loo(seen: Seen) -> Tensor:
    """`token_pg` with a leave-one-out baseline per position."""
    return seen.mean(policy_gradient(seen.logprobs, _centred(_rewards(seen))))


def full_vocab_rkl(seen: Seen) -> Tensor:
    """The exact KL at each sampled prefix."""
    return seen.mean(reverse_kl(seen.table, teacher_of(seen)))


ESTIMATORS = {
    "sequence_pg": Estimator(sequence_pg, "sequence"),
    "token_pg": Estimator(token_pg, "token"),
    "full_vocab_rkl": Estimator(full_vocab_rkl, "token"),
    "sequence_pg_loo": Estimator(sequence_pg_loo, "sequence"),
    "token_pg_loo": Estimator(token_pg_loo, "token"),
    "sequence_exact_rewards": Estimator(sequence_exact_rewards, "sequence"),
}
# The estimator with the lowest variance for each objective.
BEST: dict[Objective, str] = {"token": "full_vocab_rkl", "sequence": "sequence_exact_rewards"}


def _rewards(seen: Seen) -> Tensor:
    """Reward of each sampled token, [S, N, K, M, T]."""
    return teacher_rewards(seen.rollout.behaviour, taken(teacher_of(seen), seen.rollout.actions))


def _centred(values: Tensor) -> Tensor:
    return values - leave_one_out(values, _INPUTS)


def _summed(seen: Seen, terms: Tensor) -> Tensor:
    """The mean over rollouts of the sum over tokens, [S]."""
    return seen.mean(terms) * terms.shape[-1]
