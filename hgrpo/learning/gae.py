"""Generalised advantage estimation (GAE) with tokens, turns, or both as actions.

    delta_t = r_t + gamma V_{t+1} - V_t
    A_t     = delta_t + gamma lambda A_{t+1}

See Schulman et al. 2016, "High-Dimensional Continuous Control Using Generalized Advantage
Estimation", https://arxiv.org/abs/1506.02438. `final` is the value after the last action. It is the
critic's value if `truncation: bootstrap` is set and the episode was truncated by the turn cap or
the context length. Otherwise, it is 0.

All arrays are float64 and contain only the sampled tokens of one trajectory. Tokens of the
environment are not actions, so the last token of a reply is followed by the first token of the next
reply. `ends` is bool [N], True at the last token of every reply.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from hgrpo.learning.settings import GaeConfig


@dataclass(frozen=True)
class Estimate:
    """Advantages of one trajectory's tokens, and the critic's targets.

    Attributes:
        advantages: float64 [N].
        targets: float64 [N], targets of the critic's values.
        learnt: bool [N], whether the critic is trained on each target.
    """

    advantages: np.ndarray
    targets: np.ndarray
    learnt: np.ndarray


def gae(
    rewards: np.ndarray, values: np.ndarray, gamma: float, lam: float, final: float = 0
) -> np.ndarray:
    """The advantages A_t defined above, with the shape [N] of `rewards` and `values`."""
    advantages = np.zeros(len(values))
    following, value_after = 0.0, final
    for t in reversed(range(len(values))):
        following = rewards[t] + gamma * value_after - values[t] + gamma * lam * following
        advantages[t], value_after = following, values[t]
    return advantages


def token_gae(
    rewards: np.ndarray, values: np.ndarray, ends: np.ndarray, config: GaeConfig, final: float = 0
) -> Estimate:
    """GAE with tokens as actions, as in RAGEN's PPO (https://arxiv.org/abs/2504.20073).

    Args:
        rewards: float64 [T], one per turn, assigned to the turn's last token.
        values: float64 [N], the critic's value before each token.
    """
    advantages = gae(_at_ends(rewards, ends), values, config.gamma, config.lam, final)
    return Estimate(advantages, advantages + values, np.ones(len(values), dtype=bool))


def turn_gae(
    rewards: np.ndarray, values: np.ndarray, ends: np.ndarray, config: GaeConfig, final: float = 0
) -> Estimate:
    """GAE with whole replies as actions; all tokens of a reply have the same advantage.

    The states are the positions before replies, so the critic is trained only at the first token of
    each reply. See `token_gae` for the arguments.
    """
    starts = np.roll(ends, 1)
    turns = gae(rewards, values[starts], config.gamma, config.lam, final)
    turn = np.cumsum(starts) - 1
    return Estimate(turns[turn], (turns + values[starts])[turn], starts)


def bi_level_gae(
    rewards: np.ndarray, values: np.ndarray, ends: np.ndarray, config: GaeConfig, final: float = 0
) -> Estimate:
    """GAE over the turns with `gamma_high`, then over the tokens within each turn.

    GAE over turns uses the value at the last token of each turn. The sum of this value and the
    turn's advantage becomes the reward of this token. GAE over tokens restarts in every turn.
    This is RAGEN's bi-level GAE (https://arxiv.org/abs/2504.20073). However, RAGEN detects ends of
    turns by nonzero rewards, and therefore misses turns with reward 0. See `token_gae` for the
    arguments.
    """
    high = gae(rewards, values[ends], config.gamma_high, config.lam, final)
    pseudo = _at_ends(high + values[ends], ends)
    last = np.flatnonzero(ends) + 1
    parts = [
        gae(pseudo[start:end], values[start:end], config.gamma, config.lam)
        for start, end in zip([0, *last[:-1]], last, strict=True)
    ]
    advantages = np.concatenate(parts)
    return Estimate(advantages, advantages + values, np.ones(len(values), dtype=bool))


# Estimators by the method's `advantage`.
ESTIMATORS: Mapping[str, Callable[..., Estimate]] = {
    "gae": token_gae,
    "turn_gae": turn_gae,
    "bi_level_gae": bi_level_gae,
}


def _at_ends(rewards: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Rewards of tokens [N]: the reward of a turn at its last token, and 0 elsewhere."""
    spread = np.zeros(len(ends))
    spread[ends] = rewards
    return spread
