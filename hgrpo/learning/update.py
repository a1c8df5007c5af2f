"""One update of the policy from a batch of groups: minibatches, micro-batches, diagnostics."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer

from hgrpo.errors import TrainingError
from hgrpo.learning.batch import TrainingSequence
from hgrpo.learning.kl import KlController
from hgrpo.learning.objectives import (
    clip_fraction,
    effective_sample_share,
    importance_weights,
    kl_k3,
    ppo_clip,
    token_weights,
    truncated_share,
)
from hgrpo.learning.optimisers import clip_gradients
from hgrpo.learning.ranks import ALONE, Ranks
from hgrpo.learning.settings import TrainingConfig
from hgrpo.policy.logprobs import (
    SequenceBatch,
    make_batch,
    micro_batches,
    sampled_logprobs,
)
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import cast

# A penalty that is off is still watched, on every so many-th trajectory of the batch: a forward
# pass of the reference over all of them would be a fifth of the update.
_WATCHED = 8
# Diagnostics that there are none of without a step.
_OF_STEPS = (
    "policy_loss",
    "kl_term",
    "total_loss",
    "grad_norm",
    "entropy",
    "ratio_mean",
    "ratio_max",
    "clip_fraction",
    "ess",
    "mismatch_mean",
    "mismatch_max",
    "mismatch_kl",
    "importance_mean",
    "importance_truncated",
)


@dataclass
class Learner:
    """The policy with what an update needs besides: optimiser, KL controller, settings.

    Of several `ranks` each has the same batch, scores and differentiates a part of it, and takes
    the same step as all others.
    """

    policy: Policy
    optimiser: Optimizer
    kl: KlController
    training: TrainingConfig
    autocast: torch.dtype | None
    ranks: Ranks = ALONE

    def update(self, sequences: Sequence[TrainingSequence], order: Sequence[int]) -> dict:
        """Take `epochs * minibatches` optimiser steps.

        Args:
            sequences: all trajectories of the batch.
            order: indices of those that take part, each once; minibatches are its consecutive
                parts. None is no step.

        Returns:
            The diagnostics of the batch, means over tokens and steps; None where there was no step.
            `observed_kl` is that of the policy that played, over the whole batch or, without a
            penalty, over every `_WATCHED`-th trajectory of it.

        Raises:
            TrainingError: a loss, gradient or weight is not finite, or what the engine sampled is
                further from the trainer than `mismatch_limit`. The optimiser steps before the one
                in question have been taken.
        """
        scored = sequences if self.kl.coefficient else sequences[::_WATCHED]
        self._score_reference(scored)
        observed = _observed_kl(scored)
        if not order:
            return dict.fromkeys(_OF_STEPS) | self._kl_row(observed)
        corrected: dict[str, float] = {}
        if self.training.importance_cap is not None:
            corrected = self._score_old([sequences[i] for i in order])
        steps = []
        mismatch = {}
        for _ in range(self.training.epochs):
            for part in _split(order, self.training.minibatches):
                step, log_ratio = self._differentiate([sequences[i] for i in part])
                if not steps:
                    # Before the first step both sides hold the same weights: all is numerics.
                    mismatch = _mismatch(log_ratio)
                    self._check_mismatch((mismatch | corrected)["mismatch_mean"])
                steps.append(step | {"grad_norm": self._descend()})
        row = {name: sum(step[name] for step in steps) / len(steps) for name in steps[0]}
        row |= mismatch | {"importance_mean": 1.0, "importance_truncated": 0.0} | corrected
        row["ratio_max"] = max(step["ratio_max"] for step in steps)
        row["ess"] = min(step["ess"] for step in steps)
        row |= self._kl_row(observed)
        self.kl.update(observed)
        return row

    def _kl_row(self, observed: float) -> dict:
        return {"observed_kl": observed, "kl_coef": self.kl.coefficient}

    @torch.no_grad()
    def _score_old(self, sequences: Sequence[TrainingSequence]) -> dict[str, float]:
        """Note the trainer's log-probs of what the engine sampled, and how far they are apart."""
        for sequence, values in zip(
            sequences,
            self._scored(sequences, lambda chosen: self._logprobs(chosen)[0]),
            strict=True,
        ):
            sequence.old = values
        old = torch.cat([s.old for s in sequences])
        behaviour = torch.cat([s.behaviour for s in sequences])
        cap = self.training.importance_cap
        return _mismatch(old - behaviour) | {
            "importance_mean": float(importance_weights(old, behaviour, cap).mean()),
            "importance_truncated": float(truncated_share(old, behaviour, cap)),
        }

    @torch.no_grad()
    def _score_reference(self, sequences: Sequence[TrainingSequence]) -> None:
        def score(chosen: Sequence[TrainingSequence]) -> Tensor:
            batch = self._pad(chosen)
            with self.policy.reference() as reference, self._cast():
                return sampled_logprobs(reference, batch, self.training.temperature)[0].cpu()

        for sequence, values in zip(sequences, self._scored(sequences, score), strict=True):
            sequence.reference = values

    def _scored(
        self,
        sequences: Sequence[TrainingSequence],
        score: Callable[[Sequence[TrainingSequence]], Tensor],
    ) -> list[Tensor]:
        """Of every sequence what `score` says of its tokens; every rank scores a part of them."""
        parts = self._micro(sequences)
        mine = [score([sequences[i] for i in part]) for part in self.ranks.share(parts)]
        found: dict[int, Tensor] = {}
        for part, values in zip(parts, self.ranks.join(mine), strict=True):
            rows = values.split([len(sequences[i].behaviour) for i in part])
            found |= dict(zip(part, rows, strict=True))
        return [found[i] for i in range(len(sequences))]

    def _differentiate(
        self, minibatch: Sequence[TrainingSequence]
    ) -> tuple[dict[str, float], Tensor]:
        """Leave the gradient of a minibatch's loss in the parameters.

        Returns:
            The diagnostics, and the log of the ratio of each token in the clip, in the order of
            the micro-batches.
        """
        training = self.training
        lengths = torch.tensor([len(s.behaviour) for s in minibatch])
        weights = token_weights(lengths, training.loss_reduction).split(lengths.tolist())
        total = int(lengths.sum())
        corrects = training.importance_cap is not None
        sums = dict.fromkeys(("policy_loss", "kl_term", "entropy", "clip_fraction"), 0.0)
        ratios = []
        for part in self.ranks.share(self._micro(minibatch)):
            chosen = [minibatch[i] for i in part]
            weight = torch.cat([weights[i] for i in part])
            behaviour = torch.cat([s.behaviour for s in chosen])
            advantages = torch.cat([s.advantages for s in chosen])
            logprobs, entropy = self._logprobs(chosen)
            # What the clip's ratio is to: the engine's log-probs, or the trainer's of before.
            start = torch.cat([s.old for s in chosen]) if corrects else behaviour
            policy_terms = ppo_clip(
                logprobs, start, advantages, training.clip_low, training.clip_high
            )
            if corrects:
                policy_terms = policy_terms * importance_weights(
                    start, behaviour, training.importance_cap
                )
            policy_loss = (weight * policy_terms).sum()
            kl_term = torch.zeros(())
            if self.kl.coefficient:
                kl_terms = kl_k3(logprobs, torch.cat([s.reference for s in chosen]))
                kl_term = self.kl.coefficient * (weight * kl_terms).sum()
            (policy_loss + kl_term).backward()
            with torch.no_grad():
                share = len(behaviour) / total
                clipped = clip_fraction(
                    logprobs,
                    start,
                    advantages,
                    training.clip_low,
                    training.clip_high,
                )
                for name, value in (
                    ("policy_loss", policy_loss),
                    ("kl_term", kl_term),
                    ("entropy", entropy.mean() * share),
                    ("clip_fraction", clipped * share),
                ):
                    sums[name] += float(value)
                ratios.append((logprobs - start).detach())
        self.ranks.sum_gradients([parameter for _, parameter in self.policy.trainable])
        parts = self.ranks.gather((sums, ratios))
        sums = {name: sum(theirs[name] for theirs, _ in parts) for name in sums}
        loss = sums["policy_loss"] + sums["kl_term"]
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss is not finite (policy {sums['policy_loss']}, KL {sums['kl_term']})"
            )
        log_ratio = torch.cat([ratio for _, theirs in parts for ratio in theirs])
        return sums | {
            "total_loss": loss,
            "ratio_mean": float(log_ratio.exp().mean()),
            "ratio_max": float(log_ratio.exp().max()),
            "ess": float(effective_sample_share(log_ratio, torch.zeros_like(log_ratio))),
        }, log_ratio

    def _descend(self) -> float:
        """Take one optimiser step along the gradient; its norm before clipping."""
        parameters = [parameter for _, parameter in self.policy.trainable]
        norm = clip_gradients(parameters, self.training.max_grad_norm)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        if not all(bool(parameter.isfinite().all()) for parameter in parameters):
            raise TrainingError("an optimiser step left weights that are not finite")
        return norm

    def _check_mismatch(self, mean: float) -> None:
        limit = self.training.mismatch_limit
        if limit is not None and not mean <= limit:
            raise TrainingError(
                f"training.mismatch_limit: {limit}: what the engine sampled has log-probabilities "
                f"that are {mean:.3g} a token from the trainer's, on average"
            )

    def _micro(self, sequences: Sequence[TrainingSequence]) -> list[list[int]]:
        return micro_batches([len(s.token_ids) for s in sequences], self.training.microbatch_tokens)

    def _logprobs(self, chosen: Sequence[TrainingSequence]) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies on the CPU, where the objectives are computed."""
        with self._cast():
            logprobs, entropy = sampled_logprobs(
                self.policy.causal_lm, self._pad(chosen), self.training.temperature, entropies=True
            )
        return logprobs.cpu(), entropy.cpu()

    def _pad(self, sequences: Sequence[TrainingSequence]) -> SequenceBatch:
        spans = [s.spans for s in sequences]
        return make_batch([s.token_ids for s in sequences], spans, self.policy.device)

    def _cast(self) -> torch.autocast:
        return cast(self.policy.device, self.autocast)


def _mismatch(difference: Tensor) -> dict[str, float]:
    """How far the trainer is from the engine, by the log-probs [N] of what the engine sampled.

    `mismatch_kl` is the mean k3 per token of the engine to the trainer.
    """
    return {
        "mismatch_mean": float(difference.abs().mean()),
        "mismatch_max": float(difference.abs().max()),
        "mismatch_kl": float(kl_k3(torch.zeros_like(difference), difference).mean()),
    }


def _observed_kl(sequences: Sequence[TrainingSequence]) -> float:
    """Mean k3 per token of the policy that played, to the reference."""
    behaviour = torch.cat([s.behaviour for s in sequences])
    return float(kl_k3(behaviour, torch.cat([s.reference for s in sequences])).mean())


def _split(order: Sequence[int], parts: int) -> list[Sequence[int]]:
    """Cut into at most `parts` consecutive pieces of nearly equal length, none of them empty."""
    size, extra = divmod(len(order), parts)
    pieces, start = [], 0
    for index in range(parts):
        end = start + size + (index < extra)
        if end > start:
            pieces.append(order[start:end])
        start = end
    return pieces
