"""Gradient estimators for two objectives. An estimator maps a batch to one loss per seed, [S].

Let p be the student, q the teacher, and KL_t the reverse KL divergence at the prefix before token
t:

- The token objective is the mean over t of E[KL_t]. Prefixes are sampled from p, but the gradient
  does not flow through the sampling. OPDReverseKL uses this objective.
- The sequence objective is KL(p(y | x) || q(y | x)) = E[sum over t of KL_t]. Its gradient also
  flows through the sampling of prefixes.

Each estimator is unbiased for the gradient of its own objective. The names of the first three are
those of the original sandbox.
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
# The axis of inputs in a batch.
_INPUTS = 1


@dataclass(frozen=True)
class Estimator:
    """A loss whose gradient is an unbiased estimate of the gradient of an objective."""

    loss: Callable[[Seen], Tensor]
    objective: Objective


def sequence_pg(seen: Seen) -> Tensor:
    """Policy gradient, summed over tokens. Each token is weighted by its reward-to-go."""
    return _summed(seen, policy_gradient(seen.logprobs, rewards_to_go(_rewards(seen))))


def sequence_pg_loo(seen: Seen) -> Tensor:
    """`sequence_pg` with a leave-one-out baseline per position."""
    return _summed(seen, policy_gradient(seen.logprobs, _centred(rewards_to_go(_rewards(seen)))))


def sequence_exact_rewards(seen: Seen) -> Tensor:
    """Exact gradient of the KL at each prefix, plus a policy gradient for the KL at later prefixes.

    In the policy gradient, the reward of a token is the negative sum of the exact KLs at later
    prefixes, with a leave-one-out baseline. Only the prefixes are sampled.
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
    """The exact reverse KL at each sampled prefix."""
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
    return teacher_rewards(seen.rollout.behaviour, taken(teacher_of(seen), seen.rollout.actions))


def _centred(values: Tensor) -> Tensor:
    return values - leave_one_out(values, _INPUTS)


def _summed(seen: Seen, terms: Tensor) -> Tensor:
    """Sum over tokens, averaged over rollouts, [S]."""
    return seen.mean(terms) * terms.shape[-1]
