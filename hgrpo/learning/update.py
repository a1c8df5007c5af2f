"""The learner, which updates the policy on a batch of groups in minibatches."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from hgrpo.errors import TrainingError
from hgrpo.formulas.importance import (
    effective_sample_share,
    importance_weights,
    truncated_share,
)
from hgrpo.formulas.kl import kl_k3, kl_penalty
from hgrpo.formulas.reduction import token_weights
from hgrpo.formulas.rule import GroupRule, Rule
from hgrpo.formulas.tensors import check_shapes
from hgrpo.learning.batch import SampledSequence, TrainingSequence, by_sequence, not_finite
from hgrpo.learning.critic import Critic
from hgrpo.learning.log_row import STEP_DIAGNOSTICS, SUMS, mismatch, over_steps
from hgrpo.learning.method import ObjectiveConfig
from hgrpo.learning.optimisers import descend
from hgrpo.learning.ranks import ALONE, Ranks
from hgrpo.learning.settings import TrainingConfig
from hgrpo.learning.stops import StopState
from hgrpo.policy.logprobs import make_batch, micro_batches, sampled_logprobs
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import cast

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Without a KL penalty, measure the KL only on every 8th trajectory, because the reference's forward
# pass over all trajectories would take a fifth of the update's time.
_WATCHED = 8


@dataclass
class Learner:
    """Updates the policy with an optimiser and an adaptive KL coefficient.

    It also contains the critic, if any, and the state of the stopping rules.

    If several processes (`ranks`) share an update, each process has the whole batch, but computes
    log-probs and gradients of only a part of it. All processes take the same optimiser steps.
    """

    policy: Policy
    optimiser: Optimizer
    kl_coefficient: float
    training: TrainingConfig
    autocast: torch.dtype | None
    ranks: Ranks = ALONE
    critic: Critic | None = None
    stop: StopState = field(default_factory=StopState)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)

    STATE = ("weights", "optimiser", "kl_coefficient", "critic", "stop")

    @cached_property
    def rule(self) -> Rule:
        return self.objective.make(self.training)

    def state(self) -> dict[str, object]:
        """The state that is passed from step to step and from round to round."""
        return {
            "weights": self.policy.trained_state(),
            "optimiser": self.optimiser.state_dict(),
            "kl_coefficient": self.kl_coefficient,
            "critic": self.critic and self.critic.state(),
            # Use JSON, because pickled bytes depend on whether equal strings are the same object.
            "stop": json.dumps(asdict(self.stop)),
        }

    def load_state(self, state: Mapping[str, object]) -> None:
        self.policy.load_trained_state(state["weights"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.kl_coefficient = state["kl_coefficient"]
        if self.critic:
            self.critic.load_state(state["critic"])
        entries = json.loads(state["stop"]).items()
        self.stop = StopState(**{k: tuple(v) if isinstance(v, list) else v for k, v in entries})

    def update(self, sequences: Sequence[TrainingSequence], order: Sequence[int]) -> dict:
        """Take `epochs` passes over a batch of trajectories, with one optimiser step per minibatch.

        Args:
            order: distinct indices of the trajectories to use; `minibatches` splits it.

        Returns:
            Diagnostics for the log. Those in `STEP_DIAGNOSTICS` are None if `order` is empty.
            `n_updates` is the number of optimiser steps. `observed_kl` is an estimate of
            KL(behaviour policy || reference) per token, over the whole batch or, without a KL
            penalty, over every `_WATCHED`-th trajectory. It is None if neither the KL penalty nor
            `kl.watch` is on.

        Raises:
            TrainingError: a loss, gradient or weight is not finite, or the log-probs of engine and
                trainer differ by more than `mismatch_limit`. Optimiser steps are not undone.
        """
        observed = self._measure_kl(sequences)
        row = {"observed_kl": observed, "kl_coef": self.kl_coefficient}
        if not order:
            return dict.fromkeys(STEP_DIAGNOSTICS) | row | {"n_updates": 0}
        importance = self._correct_importance([sequences[i] for i in order])
        steps, before = self._take_steps(sequences, order, importance)
        if observed is not None:
            self.kl_coefficient = self.training.kl.adapted(self.kl_coefficient, observed)
        return over_steps(steps) | before | importance | row | {"n_updates": len(steps)}

    def _measure_kl(self, sequences: Sequence[TrainingSequence]) -> float | None:
        """Store the reference's log-probs; return the mean k3 of KL(policy || reference)."""
        if not self.kl_coefficient and not self.training.kl.watch:
            return None
        watched = sequences if self.kl_coefficient else sequences[::_WATCHED]
        self.score_reference(watched)
        behaviour = torch.cat([s.behaviour for s in watched])
        reference = torch.cat([s.reference for s in watched])
        return float(kl_k3(behaviour, reference).mean())

    def score_reference(self, sequences: Sequence[TrainingSequence]) -> None:
        with self.policy.reference() as model:
            for sequence, values in zip(sequences, self.score(sequences, model), strict=True):
                sequence.reference = values

    def _correct_importance(self, sequences: Sequence[TrainingSequence]) -> dict[str, float]:
        """If `importance_cap` is set, store the trainer's log-probs before the first step.

        Returns diagnostics of the importance weights and, if the cap is set, of the difference
        between the log-probs of engine and trainer.
        """
        cap = self.training.importance_cap
        if cap is None:
            return {"importance_mean": 1.0, "importance_truncated": 0.0}
        for sequence, values in zip(sequences, self.score(sequences), strict=True):
            sequence.old = values
        old = torch.cat([s.old for s in sequences])
        behaviour = torch.cat([s.behaviour for s in sequences])
        return mismatch(old - behaviour) | {
            "importance_mean": float(importance_weights(old, behaviour, cap).mean()),
            "importance_truncated": float(truncated_share(old, behaviour, cap)),
        }

    def _take_steps(
        self,
        sequences: Sequence[TrainingSequence],
        order: Sequence[int],
        importance: Mapping[str, float],
    ) -> tuple[list[dict[str, float]], dict[str, float]]:
        """Take all steps; return their diagnostics, and the `mismatch` before the first step."""
        steps: list[dict[str, float]] = []
        before: dict[str, float] = {}
        for _ in range(self.training.epochs):
            for part in minibatches(order, self.training, isinstance(self.rule, GroupRule)):
                step, log_ratio = self._differentiate([sequences[i] for i in part], part)
                if not steps:
                    # Before the first step, engine and trainer have the same weights, so
                    # their log-probs differ only by numerical errors.
                    before = mismatch(log_ratio)
                    mean, limit = (
                        (before | importance)["mismatch_mean"],
                        self.training.mismatch_limit,
                    )
                    if limit is not None and not mean <= limit:
                        raise TrainingError(
                            f"training.mismatch_limit: {limit}: the log-probabilities of engine "
                            f"and trainer differ by {mean:.3g} per token on average"
                        )
                parameters = [parameter for _, parameter in self.policy.trainable]
                norm = descend([self.optimiser], parameters, self.training.max_grad_norm)
                steps.append(step | {"grad_norm": norm})
        return steps, before

    @torch.no_grad()
    def score(
        self,
        sequences: Sequence[SampledSequence],
        model: "PreTrainedModel | None" = None,
        entropies: bool = False,
    ) -> list[Tensor]:
        """Log-probs of sampled tokens, or entropies at these tokens; [N] per sequence, in nats.

        `model` defaults to the policy. The sequences are divided among the ranks.
        """
        return by_sequence(
            lambda part: self._logprobs(model or self.policy.causal_lm, part, entropies)[entropies],
            sequences,
            self.training.microbatch_tokens,
            self.ranks,
            "a log-probability or entropy",
        )

    def _differentiate(
        self, minibatch: Sequence[TrainingSequence], places: Sequence[int]
    ) -> tuple[dict[str, float], Tensor]:
        """Compute the gradient of a minibatch's loss, and store it in the parameters' `grad`.

        `places` are the indices of the minibatch's trajectories in the batch.

        Returns the diagnostics, and the log ratios [N] of all tokens, ordered by rank and, within a
        rank, by micro-batch.

        Raises:
            TrainingError: the loss is not finite.
        """
        lengths = torch.tensor([len(s.behaviour) for s in minibatch])
        reduction = self.training.loss_reduction, self.training.loss_constant
        weights = token_weights(lengths, *reduction).split(lengths.tolist())
        of_groups = None
        if isinstance(self.rule, GroupRule):
            of_groups = self._first_pass(minibatch, places)
        sums, ratios, bad = dict.fromkeys(SUMS, 0.0), [], ""
        sizes = [len(s.token_ids) for s in minibatch]
        for part in self.ranks.share(micro_batches(sizes, self.training.microbatch_tokens)):
            chosen = [minibatch[i] for i in part]
            share = int(lengths[part].sum()) / int(lengths.sum())
            part_weights = torch.cat([weights[i] for i in part])
            slopes = None if of_groups is None else of_groups[1][part]
            terms, log_ratio = self._backward(chosen, part_weights, share, slopes)
            if of_groups is not None:
                terms["policy_loss"] = of_groups[0] * share
            sums = {name: sums[name] + terms[name] for name in sums}
            ratios.append(log_ratio)
            bad = bad or not_finite(log_ratio, chosen)
        return self._joined(sums, ratios, bad)

    def _first_pass(
        self, minibatch: Sequence[TrainingSequence], places: Sequence[int]
    ) -> tuple[float, Tensor]:
        """The loss of a group rule, and its derivatives w.r.t. the trajectories' log-probs [B]."""
        groups: dict[int, list[int]] = {}
        for index, place in enumerate(places):
            groups.setdefault(place // self.training.rollouts_per_task, []).append(index)
        scores = torch.stack([values.sum() for values in self.score(minibatch)])
        old = torch.stack([s.behaviour.sum() for s in minibatch])
        # All tokens of a trajectory share its advantage.
        skills = torch.stack([s.advantages[0] for s in minibatch])
        return group_slopes(self.rule, list(groups.values()), scores, old, skills)

    def _backward(
        self,
        sequences: Sequence[TrainingSequence],
        weights: Tensor,
        share: float,
        slopes: Tensor | None,
    ) -> tuple[dict[str, float], Tensor]:
        """Add the gradient of a micro-batch to the parameters.

        `weights`, float32 [N], are the weights of the tokens in the minibatch's loss. `share` is
        the micro-batch's share of the minibatch's sampled tokens. `slopes`, one per sequence, are
        the derivatives from `_first_pass`.

        Returns the micro-batch's contribution to each of `SUMS`, and its log ratios [N].
        """
        bonus = self.training.entropy_bonus
        watch = "differentiable" if bonus else True
        logprobs, entropy = self._logprobs(self.policy.causal_lm, sequences, entropies=watch)
        behaviour = torch.cat([s.behaviour for s in sequences])
        advantages = torch.cat([s.advantages for s in sequences])
        cap = self.training.importance_cap
        # Log-probs in the denominator of the ratio.
        start = behaviour if cap is None else torch.cat([s.old for s in sequences])
        if slopes is None:
            objective = self.rule.terms(logprobs, start, advantages)
            check_shapes(objective, logprobs)
            if cap is not None:
                objective = objective * importance_weights(start, behaviour, cap)
            policy_loss = (weights * objective).sum()
        else:
            lengths = torch.tensor([s.sampled for s in sequences])
            policy_loss = (slopes.float().repeat_interleave(lengths) * logprobs).sum()
        kl_term = torch.zeros(())
        if self.kl_coefficient:
            form, reference = self.training.kl.form, torch.cat([s.reference for s in sequences])
            penalty = kl_penalty(form, logprobs, reference, behaviour)
            kl_term = self.kl_coefficient * (weights * penalty).sum()
        loss = policy_loss + kl_term
        entropy_term = torch.zeros(())
        if bonus:
            entropy_term = -bonus * (weights * entropy).sum()
            loss = loss + entropy_term
        loss.backward()
        with torch.no_grad():
            clipped = None
            if slopes is None:
                clipped = self.rule.clipped(logprobs, start, advantages)
            terms = {
                "policy_loss": float(policy_loss),
                "kl_term": float(kl_term),
                "entropy_term": float(entropy_term),
                "entropy": float(entropy.mean() * share),
                "clip_fraction": 0.0 if clipped is None else float(clipped * share),
            }
            return terms, (logprobs - start).detach()

    def _joined(
        self, sums: Mapping[str, float], ratios: list[Tensor], bad: str
    ) -> tuple[dict[str, float], Tensor]:
        """Sum gradients and diagnostics over ranks; see `_differentiate` for results and errors."""
        self.ranks.sum_gradients([parameter for _, parameter in self.policy.trainable])
        parts = self.ranks.gather((sums, ratios, bad))
        sums = {name: sum(theirs[name] for theirs, _, _ in parts) for name in sums}
        first = next((f", first in {name}" for _, _, name in parts if name), "")
        loss = sums["policy_loss"] + sums["kl_term"] + sums["entropy_term"]
        if first or not math.isfinite(loss):
            raise TrainingError(
                f"the loss is not finite (policy {sums['policy_loss']}, KL {sums['kl_term']}, "
                f"entropy {sums['entropy_term']}){first}"
            )
        log_ratio = torch.cat([ratio for _, theirs, _ in parts for ratio in theirs])
        return sums | {
            "total_loss": loss,
            "ratio_mean": float(log_ratio.exp().mean()),
            "ratio_max": float(log_ratio.exp().max()),
            "ess": float(effective_sample_share(log_ratio, torch.zeros_like(log_ratio))),
        }, log_ratio

    def _logprobs(
        self,
        model: "PreTrainedModel",
        sequences: Sequence[SampledSequence],
        entropies: bool | Literal["differentiable"] = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Log-probs and optionally entropies [N], moved to the CPU, where losses are computed."""
        spans = [s.spans for s in sequences]
        batch = make_batch([s.token_ids for s in sequences], spans, self.policy.device)
        with cast(self.policy.device, self.autocast):
            logprobs, entropy = sampled_logprobs(model, batch, self.training.temperature, entropies)
        return logprobs.cpu(), entropy.cpu() if entropies else None


def minibatches(
    order: Sequence[int], training: TrainingConfig, whole_groups: bool = False
) -> list[list[int]]:
    """Split `order` into consecutive parts of nearly equal size, one per optimiser step.

    Args:
        order: indices of at least one trajectory. A group consists of `rollouts_per_task`
            consecutive trajectories of the batch.
        whole_groups: whether to keep groups together. Groups are then ordered by their first
            trajectory in `order`, and minibatches may differ in size.
    """
    size = training.minibatch_trajectories
    number = math.ceil(len(order) / size) if size else training.minibatches
    if not whole_groups:
        return [part.tolist() for part in np.array_split(order, min(len(order), number))]
    groups: dict[int, list[int]] = {}
    for index in order:
        groups.setdefault(index // training.rollouts_per_task, []).append(index)
    parts = np.array_split(np.arange(len(groups)), min(len(groups), number))
    each = list(groups.values())
    return [[index for place in part for index in each[place]] for part in parts]


def group_slopes(
    rule: GroupRule, groups: Sequence[Sequence[int]], scores: Tensor, old: Tensor, skills: Tensor
) -> tuple[float, Tensor]:
    """The mean loss of the groups, and its derivatives w.r.t. the trajectories' log-probs.

    A group's loss L depends on the policy only through the log-probs c_i of its trajectories. By
    the chain rule, its gradient is the sum of (dL / dc_i) grad c_i. A second pass can therefore
    compute the exact gradient in micro-batches, given the derivatives dL / dc_i.

    Args:
        groups: indices of each group's trajectories in the tensors.
        scores, old, skills: [B]; current log-probs, log-probs at the start of the update, and
            advantages.

    Returns:
        The loss, and dL / dc_i, float64 [B].
    """
    leaf = scores.detach().double().requires_grad_()
    old, skills = old.double(), skills.double()
    losses = [rule.loss(leaf[list(each)], old[list(each)], skills[list(each)]) for each in groups]
    loss = torch.stack(losses).mean()
    (slopes,) = torch.autograd.grad(loss, leaf)
    return float(loss.detach()), slopes
