"""The gradient of log success instead of success."""

from hgrpo.formulas.batch import Seen, Term
from hgrpo.formulas.pg import weighted
from hgrpo.formulas.rule import Rule
from hgrpo.formulas.tensors import Tensor, check_shapes, torch


def log_growth_weights(logprobs: Tensor, advantages: Tensor, success: Tensor) -> Tensor:
    """A / p for a success, and A for a failure; for one-step tasks with rewards 0 and 1.

    Without a baseline, a success then contributes grad log p / p, whose mean over the policy is
    that of log-success up to failures' terms. The rule is the original sandbox's own.

    Args:
        success: float, 1 where the sample was right, else 0.
    """
    check_shapes(logprobs, advantages, success)
    inverse = torch.exp(-logprobs.detach().clamp(min=-20.0))
    return advantages.detach() * torch.where(success > 0, inverse, torch.ones_like(inverse))


class LogGrowth(Rule):
    """Successes are divided by their probability.

    The original's own, for tasks of one step.
    """

    needs = ("bandit", "no_kl", "clean")

    def term(self, seen: Seen) -> Term:
        success = seen.over_tokens(seen.rollout.rewards)
        weights = log_growth_weights(seen.logprobs, seen.advantages, success)
        return weighted(seen, weights, weight_mean=weights.abs())
