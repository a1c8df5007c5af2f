"""TEMPO: credit from the prefix tree that a group's rollouts span."""

from hgrpo.formulas.batch import Rollout, Seen, Term
from hgrpo.formulas.group import centred, z_scores
from hgrpo.formulas.importance import importance_weights
from hgrpo.formulas.pg import Capped, pg_weights, weighted
from hgrpo.formulas.rule import GROUPS
from hgrpo.formulas.tensors import Tensor, torch

_FLOOR = 1e-8


def prefix_values(rewards: Tensor, actions: Tensor) -> Tensor:
    """V [..., K, T + 1]: the mean reward of the group's rollouts that share the first t tokens.

    Args:
        rewards: float [..., K].
        actions: int64 [..., K, T].
    """
    same = (actions.unsqueeze(-2) == actions.unsqueeze(-3)).to(rewards.dtype)
    shared = torch.cat([torch.ones_like(same[..., :1]), same.cumprod(-1)], -1)
    total = (shared * rewards[..., None, :, None]).sum(-2)
    return total / shared.sum(-2)


def tempo_advantages(rewards: Tensor, actions: Tensor) -> Tensor:
    """A_t = (R - mean + V(s_t+1) - V(s_t)) / std, float [..., K, T]; 0 in groups of equal rewards.

    The paper that names TEMPO: https://arxiv.org/abs/2509.18314. Arguments: see `prefix_values`.
    """
    values = prefix_values(rewards, actions)
    change = values[..., 1:] - values[..., :-1]
    spread = rewards.std(-1, correction=0, keepdim=True).unsqueeze(-1)
    scaled = (centred(rewards, -1).unsqueeze(-1) + change) / spread.clamp(min=_FLOOR)
    return torch.where(spread < _FLOOR, 0.0, scaled)


class TEMPO(Capped):
    """Z-scores plus the change of the prefix tree's values; on bandits z-scores alone.

    Kept: the credit. The ratio is capped as in PG.
    """

    grouped = True
    needs = GROUPS

    def term(self, seen: Seen) -> Term:
        old, advantages = seen.rollout.behaviour, self.token_credit(seen)
        return weighted(
            seen,
            pg_weights(seen.logprobs, old, advantages, self.cap),
            adv_abs_mean=advantages.abs(),
            td_nonzero_frac=_moved(seen.rollout),
            iw_mean=importance_weights(seen.logprobs, old, self.cap),
        )

    def token_credit(self, seen: Seen) -> Tensor:
        rollout = seen.rollout
        actions = rollout.actions.flatten(3)
        if actions.shape[-1] == 1:
            return seen.over_tokens(z_scores(rollout.rewards, -1))
        return tempo_advantages(rollout.rewards, actions).view_as(rollout.actions)


def _moved(rollout: Rollout) -> Tensor:
    """1 for tokens at which the prefix tree's value changes, [S, N, K, M, T]; 0 on bandits."""
    values = prefix_values(rollout.rewards, rollout.actions.flatten(3))
    moved = (values.diff(dim=-1) != 0).float().view_as(rollout.actions)
    return moved if moved.shape[-1] > 1 else torch.zeros_like(moved)
