"""Evaluates greedy and sampled rollouts of student and teacher, on all inputs.

Evaluations use their own random streams, so they do not affect training.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hgrpo.formulas.batch import seed_mean
from hgrpo.formulas.full_kl import entropy
from hgrpo.formulas.group import mixed_rate
from hgrpo.sandbox import draws
from hgrpo.sandbox.every import every
from hgrpo.sandbox.pedagogy.arithmetic import HintedArithmetic, Questions, View
from hgrpo.sandbox.policies import SequencePolicy, taken

# Number of rollout prefixes per seed in an evaluation.
_MOST_BEGINNINGS = 2000
_REFERENCE_INPUTS = 1000


@dataclass(frozen=True)
class Examiner:
    """Evaluates the policies of all seeds."""

    task: HintedArithmetic
    policy: SequencePolicy
    seeds: Sequence[int]
    group_size: int
    # Whether to draw new inputs for every evaluation, as the original sandbox does.
    draws_inputs: bool = False

    @torch.no_grad()
    def examine(self, weights: Tensor, view: View, step: int) -> dict[str, Tensor]:
        """Columns [S] of the log for the student or teacher, named as in the original sandbox.

        `entropy` is the mean entropy per token of the greedy rollout, in nats. `sampled_reward` is
        the probability of a right answer. `predicted_mixed_rate` is the probability that not all
        rewards in a group are equal. Both probabilities are exact if all rollouts can be listed.
        """
        questions = self._questions(view, step)
        done = self.policy.greedy(weights, questions.prompts[view])
        reward = seed_mean(self.task.rewards(done.actions, questions.answers[:, :, None, None]))
        spread = seed_mean(entropy(done.table))
        chances = self._success(weights, view, step)
        sampled = {
            "sampled_reward": seed_mean(chances),
            "predicted_mixed_rate": seed_mean(mixed_rate(chances, self.group_size)),
        }
        if view == "student":
            return {"test_error": 1 - reward, "reward": reward, "entropy": spread} | sampled
        columns = {"test_error": 1 - reward, "reward_eval": reward, "entropy": spread} | sampled
        return {f"teacher_{name}": column for name, column in columns.items()}

    def _questions(self, view: View, step: int) -> Questions:
        if self.draws_inputs:
            return self.task.draw(self.seeds, "evaluation", (view, step), _REFERENCE_INPUTS)
        return self._everything()

    def _everything(self) -> Questions:
        questions = self.task.everything
        seeds = len(self.seeds)
        prompts = {view: each.expand(seeds, -1, -1) for view, each in questions.prompts.items()}
        return Questions(prompts, questions.answers.expand(seeds, -1, -1))

    def _success(self, weights: Tensor, view: View, step: int) -> Tensor:
        questions = self._everything()
        inputs = questions.answers.shape[1]
        uniform = None
        if inputs * self.task.actions**self.task.scratch > _MOST_BEGINNINGS:
            shape = (inputs, max(1, _MOST_BEGINNINGS // inputs), 1, self.policy.horizon)
            uniform = draws.uniform(self.seeds, "evaluation", ("success", view, step), shape)
        return success(self.policy, weights, questions.prompts[view], questions.answers, uniform)


@torch.no_grad()
def success(
    policy: SequencePolicy,
    weights: Tensor,
    prompts: Tensor,
    answers: Tensor,
    uniform: Tensor | None = None,
) -> Tensor:
    """Probability that the last tokens are the answer, given the prompt, float [S, N].

    Without `uniform`, the result is exact: a sum over all sequences of tokens before the answer.
    With `uniform`, it is a mean over D sampled sequences of tokens before the answer, with the
    exact probability of the answer after each sequence.

    Args:
        prompts: int64 [S, N, L].
        answers: int64 [S, N, A].
        uniform: draws in [0, 1), float [S, N, D, 1, T].
    """
    scratch = policy.horizon - answers.shape[-1]
    if uniform is None:
        free = every(policy.net.vocabulary, scratch)[:, None].expand(*answers.shape[:2], -1, 1, -1)
    else:
        free = policy.sample(weights, prompts, uniform).actions[..., :scratch]
    last = answers[:, :, None, None].expand(*free.shape[:-1], -1)
    actions = torch.cat([free, last], -1)
    logprobs = taken(policy.table(weights, prompts, actions), actions).squeeze(-2)
    if uniform is None:
        return logprobs.sum(-1).exp().sum(-1)
    return logprobs[..., scratch:].sum(-1).exp().mean(-1)
