"""Reward noise, and the rates of false signal that it really made."""

import torch
from torch import Tensor

from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rl.tasks.task import Task
from hgrpo.sandbox.rollout import Questions, seed_mean


def corrupt(
    settings: RlSettings,
    task: Task,
    questions: Questions,
    actions: Tensor,
    clean: Tensor,
    draws: Tensor,
) -> Tensor:
    """Noisy rewards [S, N, K] of clean ones.

    label_flip turns r into 1 - r, random_reward draws anew from [0, 1). The other modes turn the
    reward of a wrong sample into 1 if it shows a mark: action 0 (false_positive_action0), the
    separator (false_positive_rare_token), or the first input token as its first action
    (spurious_feature; on bandits action 0).

    Args:
        draws: uniform [S, N, K, 2]. The first decides whether noise strikes; the second is the
            random reward.
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
    """Whether each rollout [S, N, K] shows the mark that the mode rewards."""
    first = actions[..., 0, 0]
    if mode == "spurious_feature":
        if task.separator is None:
            return first == 0
        return first == questions.inputs[..., 0].unsqueeze(-1)
    mark = 0 if mode == "false_positive_action0" else task.separator
    return (actions == mark).flatten(3).any(-1)


def false_rates(rewards: Tensor, clean: Tensor, right: Tensor) -> dict[str, Tensor]:
    """The share of wrong samples whose reward the noise raised, and of right samples whose reward
    it lowered, [S] each.

    Args:
        right: bool [S, N, K].
    """
    return {
        "false_positive_rate": seed_mean((rewards > clean).float(), (~right).float()),
        "false_negative_rate": seed_mean((rewards < clean).float(), right.float()),
    }
