"""Policy mirror descent as regression on the log-ratio."""

from pydantic import Field

from hgrpo.formulas.batch import Seen, Term, seed_mean
from hgrpo.formulas.rule import Rule
from hgrpo.formulas.tensors import Tensor, check_shapes


def mirror_descent(log_ratio: Tensor, advantages: Tensor, tau: float) -> Tensor:
    """(tau log(p / p_behaviour) - A)^2 with A = R - E[R].

    It is 0 where p is proportional to p_behaviour exp(A / tau), up to the partition function. See
    "Kimi k1.5: Scaling Reinforcement Learning with LLMs", section 2.3,
    https://arxiv.org/abs/2501.12599, and its analysis, https://arxiv.org/abs/2602.05933.

    Args:
        log_ratio: float, the log-ratio of a whole rollout, with its gradient.
    """
    check_shapes(log_ratio, advantages)
    return (tau * log_ratio - advantages.detach()).square()


class PMDMean(Rule):
    """The log-ratio of a rollout is fitted to its reward less the mean reward.

    Kept: the regression, (tau log-ratio - (R - mean R))^2. The mean reward is exact where the task
    states it, else that of the batch.
    """

    tau: float = Field(1.0, gt=0, description="temperature of the regression")

    def term(self, seen: Seen) -> Term:
        rollout = seen.rollout
        if rollout.expected is None:
            mean = seed_mean(rollout.rewards, rollout.keep)[:, None, None]
        else:
            mean = rollout.expected.unsqueeze(-1)
        log_ratio = seen.scores - seen.old_scores
        terms = mirror_descent(log_ratio, (rollout.rewards - mean).expand_as(log_ratio), self.tau)
        return Term(
            seed_mean(terms, rollout.keep),
            {"log_ratio_mean": seed_mean(log_ratio.detach(), rollout.keep)},
        )
