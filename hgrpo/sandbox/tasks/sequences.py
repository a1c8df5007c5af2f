"""Sequence tasks: an input, a separator, and an output of equal length with one right answer.

Inputs are `seq_len` tokens below `vocab_size`. The separator has the id `vocab_size`. A policy can
emit the separator, but it is never part of the right answer. The task format_answer has one more
token, the tag, with which the output must begin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hgrpo.formulas.batch import Questions
from hgrpo.sandbox import draws
from hgrpo.sandbox.every import every
from hgrpo.sandbox.nets.transformer import Transformer
from hgrpo.sandbox.policies import Policy, Sampled, SequencePolicy, taken
from hgrpo.sandbox.run_settings import TransformerSettings
from hgrpo.sandbox.tasks import CHAINS, REVERSALS

# Evaluations use all inputs if there are at most this many.
_MOST_INPUTS = 4096
_DRAWN = 1000


@dataclass(frozen=True)
class SequenceTask:
    """The task `name` from REVERSALS or CHAINS, with outputs of `horizon` tokens.

    In masked_reversal, only the last `score_len` positions are rewarded. If `binary` is set, a
    reversal is rewarded only if it is entirely right.
    """

    name: str
    vocabulary: int
    horizon: int
    net: TransformerSettings
    score_len: int = 0
    binary: bool = False

    @property
    def separator(self) -> int:
        return self.vocabulary

    @property
    def actions(self) -> int:
        return self.vocabulary + (2 if self.name == "format_answer" else 1)

    @property
    def scored(self) -> Tensor:
        positions = torch.arange(self.horizon)
        if self.name != "masked_reversal":
            return torch.ones(self.horizon)
        return (positions >= self.horizon - self.score_len).float()

    def policy(self) -> Policy:
        size = self.net
        net = Transformer(
            self.actions, 2 * self.horizon + 1, size.d_model, size.nhead, size.num_layers
        )
        return SequencePolicy(net, self.horizon)

    def draw(self, seeds: Sequence[int], step: object, count: int) -> Questions:
        shape = (count, self.horizon)
        return self.questions(draws.integers(seeds, "data", (step,), shape, self.vocabulary))

    def examination(self) -> tuple[Questions, bool]:
        vocabulary, length = self.vocabulary, self.horizon
        if vocabulary**length <= _MOST_INPUTS:
            return self.questions(every(vocabulary, length).unsqueeze(0)), True
        drawn = draws.integers((0,), "evaluation", ("inputs",), (_DRAWN, length), vocabulary)
        return self.questions(drawn), False

    def questions(self, tokens: Tensor) -> Questions:
        """Prompts and labels of inputs [S, N, H]."""
        separators = torch.full_like(tokens[..., :1], self.separator)
        return Questions(torch.cat([tokens, separators], -1), self.labels(tokens))

    def labels(self, tokens: Tensor) -> Tensor:
        """The right outputs of inputs [..., H]."""
        vocabulary = self.vocabulary
        if self.name == "chain_arithmetic":
            total = tokens[..., :-1].sum(-1, keepdim=True) % vocabulary
            return torch.cat([tokens[..., :-1], total], -1)
        if self.name == "format_answer":
            tag = torch.full_like(tokens[..., :1], vocabulary + 1)
            answer = tokens[..., :2].sum(-1, keepdim=True) % vocabulary
            return torch.cat([tag, answer, tokens[..., 2:]], -1)
        return tokens.flip(-1)

    def rewards(self, actions: Tensor, labels: Tensor) -> Tensor:
        correct = actions == labels
        if self.name in CHAINS:
            steps = [part.all(-1).float() for part in self._steps(correct)]
            return sum(steps) / len(steps)
        if self.binary:
            return self.right(actions, labels).float()
        return (correct * self.scored).sum(-1) / self.scored.sum()

    def _steps(self, correct: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The three parts of a chain's answer; each gives a reward of 1/3 if right."""
        if self.name == "chain_reversal":
            half = self.horizon // 2
            return correct[..., :half], correct[..., half:], correct
        if self.name == "chain_arithmetic":
            return correct[..., :-1], correct[..., -1:], correct
        return correct[..., :1], correct[..., 1:2], correct

    def right(self, actions: Tensor, labels: Tensor) -> Tensor:
        return ((actions == labels) | (self.scored == 0)).all(-1)

    def errors(self, actions: Tensor, labels: Tensor) -> Mapping[str, Tensor]:
        wrong = 1.0 - self.right(actions, labels).float()
        if self.name in CHAINS:
            return {"test_error": wrong, "chain_reward": self.rewards(actions, labels)}
        missed = (actions != labels).float()
        unscored = 1.0 - self.scored
        columns = {
            "test_error": wrong
            if self.binary
            else (missed * self.scored).sum(-1) / self.scored.sum()
        }
        if self.name == "masked_reversal":
            columns["test_error_unscored"] = (missed * unscored).sum(-1) / unscored.sum().clamp(
                min=1.0
            )
        return columns

    def more(self, greedy: Sampled, questions: Questions) -> dict[str, Tensor]:
        return {}

    def stated(self, policy: Policy, weights: Tensor, questions: Questions) -> Tensor | None:
        """Probability of the right answer, for reversals with binary reward."""
        if self.name not in REVERSALS or not self.binary or bool((self.scored == 0).any()):
            return None
        answer = questions.labels[:, :, None, None]
        with torch.no_grad():
            table = policy.table(weights, questions.inputs, answer)
            return taken(table, answer).sum(-1).exp()[:, :, 0, 0]

    def adjust(self, rewards: Tensor, sampled: Sampled, questions: Questions) -> Tensor:
        return rewards
