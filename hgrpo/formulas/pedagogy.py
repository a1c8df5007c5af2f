"""Rewards of a teacher, which are lower for rollouts that surprise the student.

See "Pedagogical RL", https://noahziems.com/pedagogical-rl. Tensors have one entry per rollout. The
argument `penalty` measures the surprise, e.g. with `spike`, and is at least 0.
"""

import math
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from hgrpo.config.strict import refuse_unread
from hgrpo.formulas.batch import Seen, Term, seed_mean, taken
from hgrpo.formulas.clip import surrogate
from hgrpo.formulas.group import z_scores
from hgrpo.formulas.rule import Rule
from hgrpo.formulas.tensors import Tensor, check_shapes, torch

_FLOOR = 1e-8


def learnability(penalty: Tensor, strength: float) -> Tensor:
    """exp(-strength * penalty), in (0, 1]; 1 for a penalty of 0."""
    return (-strength * penalty).exp()


def product_reward(success: Tensor, penalty: Tensor, strength: float) -> Tensor:
    """Success times learnability. The reward of a failure is therefore always 0."""
    return success * learnability(penalty, strength)


def additive_reward(success: Tensor, penalty: Tensor, strength: float) -> Tensor:
    """success - strength * penalty, which can be lower for a success than for a failure."""
    return success - strength * penalty


def surprise_gaps(table: Tensor, chosen: Tensor) -> Tensor:
    """max_a log p(a) - log p(chosen), in nats, at least 0; 0 if `chosen` is the most likely token.

    Args:
        table: float [..., V].
        chosen: float [...].
    """
    return table.amax(-1) - chosen


def spike(gaps: Tensor, beta: float) -> Tensor:
    """(logsumexp(beta gaps) - log T) / beta over the T tokens of the last axis.

    It approaches the mean gap for beta -> 0, and the largest gap for beta -> infinity. With a large
    beta, one very unlikely token has more effect than many slightly unlikely tokens.
    """
    return (torch.logsumexp(beta * gaps, -1) - math.log(gaps.shape[-1])) / beta


def surprisal_gates(logprobs: Tensor, kappa: float, gamma: float) -> Tensor:
    """sigmoid(kappa (log p - gamma)), no gradient: near 1 for tokens more likely than e^gamma.

    Pass log-probs under the current policy, because imitation changes the policy.
    """
    return torch.sigmoid(kappa * (logprobs.detach() - gamma))


def weighted_imitation(logprobs: Tensor, weights: Tensor) -> Tensor:
    """-sum w log p / sum w over the tokens of the last axis."""
    check_shapes(logprobs, weights)
    return -(weights * logprobs).sum(-1) / weights.sum(-1).clamp(min=_FLOOR)


class StudentGRPO(Rule):
    """GRPO without a KL penalty, on the student's own rollouts."""

    piece = "pedagogy"
    grouped = True
    needs = ("groups",)
    # Whether the policy gradient uses the teacher's rollouts; if not, it uses the student's.
    teaches: ClassVar[bool] = False

    # With a clip of 0, rounding errors would determine which tokens have a gradient.
    clip: float = Field(0.2, gt=0, description="ratios are clipped to [1 - clip, 1 + clip]")

    def term(self, seen: Seen) -> Term:
        """Clipped surrogate loss of the policy that sampled the rollouts (teacher or student)."""
        advantages = seen.over_tokens(z_scores(seen.rollout.rewards, -1))
        terms, columns = surrogate(seen, advantages, self.clip, self.clip)
        return Term(seen.mean(terms), columns)


class TeacherRL(StudentGRPO):
    """The student imitates a teacher whose reward is success minus the student's surprisal.

    All imitated tokens have equal weights. This is a control from the original sandbox.
    """

    needs = ("groups", "teacher_steps", "penalty_counts")
    teaches = True

    strength: float = Field(0.5, ge=0, description="weight of the penalty")
    imitated: Literal["all", "correct"] = Field(
        "all", description="teacher rollouts that the student imitates"
    )

    def pay(
        self, success: Tensor, table: Tensor, actions: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The reward of each rollout of the teacher, [S, N, K], and metrics to log, [S] each.

        Args:
            success: 1 for a correct answer, [S, N, K].
            table: the student's log-probs along the rollouts, [S, N, K, 1, T, V].
            actions: the rollouts, int64 [S, N, K, 1, T].
        """
        surprisal = _surprisal(table, actions)
        paid = additive_reward(success, surprisal, self.strength)
        columns = {
            "task_reward": success,
            "teacher_additive_reward": paid,
            "avg_student_surprisal": surprisal,
        }
        return paid, {name: seed_mean(values) for name, values in columns.items()}

    def imitate(self, seen: Seen) -> Term:
        """Loss of the student: cross-entropy to the imitated rollouts of the teacher."""
        loss = self.imitation_loss(seen, torch.ones_like(seen.logprobs))
        return Term(loss, {"sft_loss": loss.detach()})

    def imitation_loss(self, seen: Seen, weights: Tensor) -> Tensor:
        """Cross-entropy [S] to the imitated rollouts, with token weights `weights`."""
        rollout = seen.rollout
        keep = rollout.keep * rollout.clean if self.imitated == "correct" else rollout.keep
        return seed_mean(weighted_imitation(seen.logprobs, weights).squeeze(-1), keep)


class PedagogicalRL(TeacherRL):
    """The student imitates a teacher whose reward is success times learnability.

    Kept from the source: this reward, the penalty `spike`, and smaller weights for imitated tokens
    that surprise the student. Other values of `reward`, `penalty`, `imitation` and `imitated` are
    controls.
    """

    needs = (*TeacherRL.needs, "tokens_to_compare")

    reward: Literal["product", "additive"] = Field(
        "product",
        description="product: success * exp(-strength * penalty); additive: success - strength * "
        "penalty",
    )
    penalty: Literal["spike", "mean", "surprisal"] = Field(
        "spike",
        description="spike: soft maximum of the student's log-prob gaps to its most likely token; "
        "mean: mean of these gaps; surprisal: mean of the student's -log p",
    )
    imitation: Literal["gated", "plain"] = Field(
        "gated", description="gated: tokens that surprise the student have less weight"
    )
    beta: float = Field(5.0, gt=0, description="sharpness of `spike`'s soft maximum, per nat")
    kappa: float = Field(4.0, gt=0, description="steepness of the gate of `gated`, per nat")
    gamma: float = Field(-2.5, description="log-prob at which the gate of `gated` is 1/2")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        gated = self.imitation == "gated"
        refuse_unread(
            self,
            ("beta", self.penalty == "spike", "penalty: spike"),
            ("kappa", gated, "imitation: gated"),
            ("gamma", gated, "imitation: gated"),
        )
        return self

    def pay(
        self, success: Tensor, table: Tensor, actions: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        gaps = surprise_gaps(table, taken(table, actions))[..., 0, :]
        surprisal = _surprisal(table, actions)
        spikes = spike(gaps, self.beta)
        penalty = {"spike": spikes, "mean": gaps.mean(-1), "surprisal": surprisal}[self.penalty]
        form = product_reward if self.reward == "product" else additive_reward
        paid = form(success, penalty, self.strength)
        column = "pedagogy_reward" if self.reward == "product" else "teacher_additive_reward"
        columns = {
            "task_reward": success,
            column: paid,
            "learnability": learnability(penalty, self.strength),
            "spike_penalty": spikes,
            "avg_surprise_gap": gaps.mean(-1),
            "max_surprise_gap": gaps.amax(-1),
            "avg_student_surprisal": surprisal,
        }
        return paid, {name: seed_mean(values) for name, values in columns.items()}

    def imitate(self, seen: Seen) -> Term:
        if self.imitation == "plain":
            return super().imitate(seen)
        gates = surprisal_gates(seen.logprobs, self.kappa, self.gamma)
        loss = self.imitation_loss(seen, gates)
        metrics = {
            "assim_loss": loss.detach(),
            "assim_gate_mean": seen.mean(gates),
            "assim_logp_mean": seen.mean(seen.logprobs.detach()),
        }
        return Term(loss, metrics)


def _surprisal(table: Tensor, actions: Tensor) -> Tensor:
    """Mean of -log p over a rollout's tokens, in nats, [S, N, K]."""
    return -taken(table, actions)[..., 0, :].mean(-1)
