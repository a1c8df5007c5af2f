"""Samples fresh batches: inputs, actions, candidates, rewards and reward noise."""

from dataclasses import replace

import torch
from torch import Tensor

from hgrpo.formulas.batch import Candidates, Questions, Rollout, seed_mean
from hgrpo.formulas.full_kl import collision_probability
from hgrpo.sandbox import draws
from hgrpo.sandbox.policies import Policy, Sampled
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rl.tasks.task import Task, expected_rewards

VIEW = "policy"
# Rewards of a group count as equal if their standard deviation is at most this value.
_EQUAL = 1e-6


@torch.no_grad()
def sample(settings: RlSettings, task: Task, policy: Policy, weights: Tensor, step: int) -> Rollout:
    """Sample the batch of a step with `weights` [S, P]."""
    seeds = settings.seeds
    size = settings.group_size if settings.samples_groups else 1
    questions = task.draw(seeds, step, settings.batch_size // size)
    shape = (questions.labels.shape[1], size, 1, task.horizon)
    sampled = policy.sample(
        weights, questions.inputs, draws.uniform(seeds, "action", (step,), shape)
    )
    labels = questions.labels[:, :, None, None]
    clean = task.rewards(sampled.actions, labels)[..., 0]
    rewards = clean
    if settings.reward_noise > 0:
        noise = draws.uniform(seeds, "noise", (step,), (*shape[:2], 2))
        rewards = corrupt(settings, task, questions, sampled.actions, clean, noise)
    rollout = Rollout(
        inputs={VIEW: questions.inputs},
        actions=sampled.actions,
        behaviour=sampled.logprobs,
        rewards=task.adjust(rewards, sampled, questions),
        clean=task.adjust(clean, sampled, questions),
        mask=torch.ones_like(sampled.logprobs),
        keep=torch.ones_like(rewards),
        age=torch.zeros(len(seeds), dtype=torch.int64),
        labels=questions.labels,
        collision=collision_probability(sampled.table),
        expected=_expected(settings, task, policy, weights, questions),
    )
    if settings.rule.candidates:
        return replace(rollout, candidates=_candidates(settings, task, sampled, questions, step))
    return _compared(settings, rollout, rewards)


def without_noise(settings: RlSettings, task: Task, rollout: Rollout) -> Rollout:
    """Return the batch with noise-free rewards."""
    whole = replace(rollout, rewards=rollout.clean, keep=torch.ones_like(rollout.keep))
    earned = task.rewards(rollout.actions, rollout.labels[:, :, None, None])[..., 0]
    return _compared(settings, whole, earned)


def _compared(settings: RlSettings, rollout: Rollout, uncharged: Tensor) -> Rollout:
    """For a grouped rule, add `mixed` [S, N] to the batch: 1 if a group's rewards differ.

    With `compat: reference`, `mixed` is computed from `uncharged` [S, N, K], the rewards before the
    task's penalties. Groups with equal rewards are then excluded, unless no group is mixed.
    """
    if not settings.rule.grouped:
        return rollout
    reference = settings.compat == "reference"
    mixed = (uncharged if reference else rollout.rewards).std(-1, correction=0) > _EQUAL
    rollout = replace(rollout, extras={"mixed": mixed.float()})
    if not reference:
        return rollout
    retained = mixed | ~mixed.any(1, keepdim=True)
    return rollout.restricted(retained.float().unsqueeze(-1))


def _expected(
    settings: RlSettings, task: Task, policy: Policy, weights: Tensor, questions: Questions
) -> Tensor | None:
    """E[R | input] without noise, or None. Outputs are only enumerated if `baseline` is exact."""
    if settings.baseline == "exact":
        return expected_rewards(task, policy, weights, questions)
    return None if settings.reward_noise else task.stated(policy, weights, questions)


def _candidates(
    settings: RlSettings, task: Task, sampled: Sampled, questions: Questions, step: int
) -> Candidates:
    """Draw `group_size` candidates for every token; the first one is the sampled token."""
    shape = (*sampled.actions.shape[1:], settings.group_size - 1)
    uniform = draws.uniform(settings.seeds, "candidate", (step,), shape)
    more = draws.pick(sampled.table.unsqueeze(-2), uniform)
    actions = torch.cat([sampled.actions.unsqueeze(-1), more], -1)
    right = actions == questions.labels[:, :, None, None, :, None]
    return Candidates(
        actions,
        sampled.table.gather(-1, actions),
        right.float() * task.scored.unsqueeze(-1),
    )


def corrupt(
    settings: RlSettings,
    task: Task,
    questions: Questions,
    actions: Tensor,
    clean: Tensor,
    draws: Tensor,
) -> Tensor:
    """Add noise to clean rewards [S, N, K].

    - label_flip replaces a reward r by 1 - r.
    - random_reward replaces it by a draw from [0, 1).
    - false_positive_action0 sets it to 1 if a wrong sample contains action 0.
    - false_positive_rare_token sets it to 1 if a wrong sample contains the separator.
    - spurious_feature sets it to 1 if a wrong sample begins with the first input token, or with
      action 0 if the task is a bandit.

    Args:
        draws: uniform [S, N, K, 2]. The first number decides whether noise is applied, and the
            second is the random reward.
    """
    strikes = draws[..., 0] < settings.reward_noise
    mode = settings.reward_noise_mode
    if mode == "label_flip":
        noisy = 1.0 - clean
    elif mode == "random_reward":
        noisy = draws[..., 1]
    else:
        labels = questions.labels[:, :, None, None]
        wrong = ~task.right(actions, labels)[..., 0]
        noisy = torch.where(wrong & _marked(mode, task, questions, actions), 1.0, clean)
    return torch.where(strikes, noisy, clean)


def _marked(mode: str, task: Task, questions: Questions, actions: Tensor) -> Tensor:
    """Whether each rollout [S, N, K] has the feature that the noise mode rewards."""
    first = actions[..., 0, 0]
    if mode == "spurious_feature":
        if task.separator is None:
            return first == 0
        return first == questions.inputs[..., 0].unsqueeze(-1)
    mark = 0 if mode == "false_positive_action0" else task.separator
    return (actions == mark).flatten(3).any(-1)


def false_rates(rewards: Tensor, clean: Tensor, right: Tensor) -> dict[str, Tensor]:
    """False positive rate and false negative rate of the noisy rewards, [S] each.

    Args:
        right: bool [S, N, K].
    """
    return {
        "false_positive_rate": seed_mean((rewards > clean).float(), (~right).float()),
        "false_negative_rate": seed_mean((rewards < clean).float(), right.float()),
    }
