"""Modulates the trajectory's advantage by the policy's entropy at each turn.

The rule `scaled` is EMPG ("Harnessing Uncertainty: Entropy-Modulated Policy Gradients for
Long-Horizon LLM Agents", https://arxiv.org/abs/2509.09265). Let h be the mean entropy of a turn's
tokens, min-max scaled to [0, 1] over the turns of the group. The advantage is A_t = B_t - mean B
with

    B_t = A_traj exp(-k h_t) / mean exp(-k h) + bonus exp(-k' h_{t+1}).

Turns at which the policy is confident get larger advantages, and the turn before a confident turn
gets a bonus. The last turn gets no bonus. In the paper, the range for min-max scaling and the means
are computed over the batch. Here, they are computed over the group, so that groups are independent.

The rule `chosen` selects turns as in CARL ("CARL: Critical Action Focused Reinforcement Learning
for Multi-Step Agent", https://arxiv.org/abs/2512.04949). The entropy of a turn is summed over the
tokens of its reply. A_t is A_traj at the turns with the highest entropy, and 0 at all other turns.
Unlike CARL, this implementation does not branch rollouts at these turns.
"""

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from hgrpo.config.strict import refuse_unread
from hgrpo.credit.base import Context, CreditAssigner, Group
from hgrpo.credit.settings import CreditSettings
from hgrpo.standardise import standardise

_FLOOR = 1e-6
_WHY = "its credit is already the final advantage"


class Settings(CreditSettings):
    """Keys beside `kind: entropy`."""

    needs_policy = True
    demands = {
        "alpha": (0.0, f"{_WHY}, which includes the trajectory's advantage"),
        "turn_norm": ("none", _WHY),
        "group_norm": ("std", f"{_WHY}, of z-scored returns"),
    }

    rule: Literal["scaled", "chosen"] = Field(
        description="scaled: weight turns by the policy's confidence (EMPG); chosen: use only the "
        "turns with the highest entropy (CARL)"
    )
    sharpness: float = Field(1.0, ge=0, description="scaled: decay rate k of a turn's weight")
    bonus: float = Field(0.1, ge=0, description="scaled: size of the bonus; 0: no bonus")
    bonus_sharpness: float = Field(1.0, ge=0, description="scaled: k', decay rate of the bonus")
    equal_returns: Literal["zero", "bonus"] = Field(
        "zero",
        description="scaled: advantages in a group whose returns are all equal. zero: 0; bonus: "
        "the bonus, as in the paper",
    )
    share: float = Field(
        0.5, gt=0, le=1, description="chosen: share of a group's turns that are used"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        scaled = self.rule == "scaled"
        refuse_unread(
            self,
            ("sharpness", scaled, "rule: scaled"),
            ("bonus", scaled, "rule: scaled"),
            ("bonus_sharpness", scaled and self.bonus > 0, "rule: scaled and bonus above 0"),
            ("equal_returns", scaled and self.bonus > 0, "rule: scaled and bonus above 0"),
            ("share", not scaled, "rule: chosen"),
        )
        return self


class EntropyCredit(CreditAssigner):
    """Computes the policy's entropies with one forward pass per trajectory."""

    def __init__(self, settings: Settings, context: Context):
        super().__init__(settings, context)
        self._seen: list[float] = []

    def assign(self, group: Group) -> list[np.ndarray]:
        """Return the final advantage of every turn, K float64 arrays [T_k]."""
        from hgrpo.policy.logprobs import reply_entropies

        policy, temperature = self.context.policy, self.context.collector.temperature
        tokens = [
            reply_entropies(policy, played.token_ids, played.spans, temperature)
            for played in group.trajectories
        ]
        self._seen += [float(reply.sum()) for row in tokens for reply in row]
        returns = np.array([trajectory.env_return for trajectory in group.trajectories])
        advantages = standardise(returns, _FLOOR)
        settings = self.settings
        if settings.rule == "chosen":
            sums = [np.array([reply.sum() for reply in row]) for row in tokens]
            return most_uncertain(advantages, sums, settings.share)
        means = [np.array([reply.mean() for reply in row]) for row in tokens]
        live = advantages.any() or settings.equal_returns == "bonus"
        bonus = settings.bonus if live else 0.0
        return modulated(advantages, means, settings.sharpness, bonus, settings.bonus_sharpness)

    def report(self) -> dict[str, float]:
        """Return `turn_entropy`, the mean entropy of replies since the last report, in nats."""
        seen, self._seen = self._seen, []
        return {"turn_entropy": float(np.mean(seen))} if seen else {}


def modulated(
    advantages: np.ndarray,
    entropies: Sequence[np.ndarray],
    sharpness: float,
    bonus: float,
    bonus_sharpness: float,
) -> list[np.ndarray]:
    """Return EMPG's advantages, K arrays [T_k].

    Args:
        advantages: A_traj, [K].
        entropies: K arrays [T_k]. If all entropies are equal, every h_t is 0.
        sharpness, bonus, bonus_sharpness: k, bonus and k' in the module's docstring.
    """
    ends = np.cumsum([len(row) for row in entropies])[:-1]
    flat = np.concatenate([*entropies, np.zeros(0)])
    if not len(flat):
        return [np.zeros(0) for _ in entropies]
    spread = np.ptp(flat)
    scaled = (flat - flat.min()) / spread if spread > 0 else np.zeros_like(flat)
    weights = np.split(np.exp(-sharpness * scaled), ends)
    mean = np.concatenate(weights).mean()
    clear = np.split(np.exp(-bonus_sharpness * scaled), ends)
    rows = [
        advantage * weight / mean + bonus * np.append(after[1:], np.zeros(min(1, len(after))))
        for advantage, weight, after in zip(advantages, weights, clear, strict=True)
    ]
    centre = np.concatenate(rows).mean()
    return [row - centre for row in rows]


def most_uncertain(
    advantages: np.ndarray, entropies: Sequence[np.ndarray], share: float
) -> list[np.ndarray]:
    """Return A_traj [K] at the turns with the highest entropy and 0 elsewhere, K arrays [T_k].

    The number of selected turns is the fraction `share` of the group's turns, rounded up. Turns
    with the same entropy as the last selected turn are also selected.
    """
    flat = np.concatenate([*entropies, np.zeros(0)])
    if not len(flat):
        return [np.zeros(0) for _ in entropies]
    least = np.sort(flat)[-int(np.ceil(share * len(flat)))]
    return [
        np.where(row >= least, advantage, 0.0)
        for advantage, row in zip(advantages, entropies, strict=True)
    ]


make = EntropyCredit
