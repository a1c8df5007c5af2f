"""One update of the policy from a batch of groups: minibatches, micro-batches, diagnostics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from hgrpo.config.training import TrainingConfig
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
    """The policy with what an update needs besides: optimiser, KL controller, settings."""

    policy: Policy
    optimiser: Optimizer
    kl: KlController
    training: TrainingConfig
    autocast: torch.dtype | None

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
        for _ in range(self.training.epochs):
            for part in _split(order, self.training.minibatches):
                steps.append(self._step([sequences[i] for i in part]))
        # Before the first step both sides hold the same weights, so any difference is numerics.
        mismatch = steps[0].pop("mismatch")
        for step in steps[1:]:
            del step["mismatch"]
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
        for part in self._micro(sequences):
            chosen = [sequences[i] for i in part]
            logprobs, _ = self._logprobs(chosen)
            for sequence, values in zip(
                chosen, logprobs.split([len(s.behaviour) for s in chosen]), strict=True
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
        for part in self._micro(sequences):
            chosen = [sequences[i] for i in part]
            batch = self._pad(chosen)
            with self.policy.reference() as reference, self._cast():
                logprobs, _ = sampled_logprobs(reference, batch, self.training.temperature)
            logprobs = logprobs.cpu()
            for sequence, values in zip(
                chosen, logprobs.split([len(s.behaviour) for s in chosen]), strict=True
            ):
                sequence.reference = values

    def _step(self, minibatch: list[TrainingSequence]) -> dict[str, Any]:
        training = self.training
        lengths = torch.tensor([len(s.behaviour) for s in minibatch])
        weights = token_weights(lengths, training.loss_reduction).split(lengths.tolist())
        total = int(lengths.sum())
        corrects = training.importance_cap is not None
        sums: dict[str, float] = {}
        ratios = []
        for part in self._micro(minibatch):
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
                    sums[name] = sums.get(name, 0.0) + float(value)
                ratios.append((logprobs - start).detach())
        norm = clip_gradients([p for _, p in self.policy.trainable], training.max_grad_norm)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        log_ratio = torch.cat(ratios)
        return sums | {
            "total_loss": sums["policy_loss"] + sums["kl_term"],
            "grad_norm": norm,
            "ratio_mean": float(log_ratio.exp().mean()),
            "ratio_max": float(log_ratio.exp().max()),
            "ess": float(effective_sample_share(log_ratio, torch.zeros_like(log_ratio))),
            "mismatch": _mismatch(log_ratio),
        }

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
