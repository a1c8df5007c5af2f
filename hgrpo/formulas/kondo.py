"""Kondo's screen: only samples that delight enough reach the backward pass.

The paper that names it: https://arxiv.org/abs/2603.20526.
"""

from pydantic import Field

from hgrpo.formulas.batch import Rollout
from hgrpo.formulas.dg import DG, delight
from hgrpo.formulas.tensors import Tensor, torch

_HALVINGS = 40
# At 20 temperatures from its centre a sigmoid is within 3e-9 of 0 or 1.
_FLAT = 20.0


def keep_probabilities(delight: Tensor, keep: float, eta: float) -> Tensor:
    """sigmoid((delight - price) / eta), where the price makes the mean over `dim` -1 be `keep`.

    Args:
        delight: float [..., B], one number a sample.
        keep: expected share of samples that pass, in (0, 1]; at 1 every sample passes.

    Bisection finds the price to 2^-40 of its bracket.
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
    """1 for samples that pass, else 0, float [..., B]; the most delightful one always passes.

    `draws` are uniform in [0, 1), [..., B]; a sample passes if its draw is below its probability.
    """
    passed = draws < keep_probabilities(delight, keep, eta)
    best = delight == delight.amax(-1, keepdim=True)
    first = best & (best.cumsum(-1) == 1)
    return (passed | first).float()


class Kondo(DG):
    """DG on rollouts with much delight, which is advantage times surprisal.

    Kept: the screen by a price of delight. A rollout counts as much as its most delightful token,
    under the policy that sampled it, and chance decides near the price. Advantages in the screen
    are rewards less the collision probability, whatever the run's `baseline`.
    """

    agents = False
    needs = ("two_survivors",)
    screens = True

    keep: float = Field(0.5, gt=0, le=1, description="expected share of samples that pass")

    def screen(self, rollout: Rollout, uniform: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        advantages = rollout.rewards[..., None, None] - rollout.collision
        best = delight(rollout.behaviour, advantages).flatten(3).amax(-1).flatten(1)
        chances = keep_probabilities(best, self.keep, self.eta)
        keep = kondo_keep(best, uniform, self.keep, self.eta)
        metrics = {"kept_frac": keep.mean(1), "gate_prob_mean": chances.mean(1)}
        return keep.view_as(rollout.rewards), metrics
