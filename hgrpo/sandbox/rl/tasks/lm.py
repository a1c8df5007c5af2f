"""The language model bandit: predict the next token after a context.

The initial policy, shared by all seeds, is a small character model that is pretrained here, or a
model from Hugging Face. The text is the user's file, or sentences of a synthetic grammar. The last
fifth of the text is the test set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hgrpo.errors import UserError
from hgrpo.formulas.batch import Questions
from hgrpo.games import streams
from hgrpo.games.user_path import user_text
from hgrpo.sandbox import draws
from hgrpo.sandbox.policies import BanditPolicy, Policy, Sampled, taken
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rl.tasks.char_model import char_model, encode, hf_model, windows
from hgrpo.sandbox.rl.tasks.task import Bandit

MODEL = "char"
_SENTENCES = 1500
_TEST_SHARE = 5
_MOST_CONTEXTS = 500
_LEVELS = ("easy", "medium", "hard")
_WHO = (
    "the old miller",
    "a young fox",
    "her brother",
    "the last guest",
    "our cook",
    "a tall clerk",
)
_WHERE = ("by the river", "in the mill", "under the bridge", "at the market", "behind the barn")
_WHAT = ("a red lamp", "two apples", "the blue key", "seven coins", "a loaf of bread", "the map")
_DID = ("found", "lost", "hid", "sold", "carried", "forgot")
_WHEN = ("before dawn", "after supper", "on monday", "all winter long", "once again")


@dataclass(frozen=True)
class LmBandit(Bandit):
    """The token ids of the training and test text, int64 [n], and the initial policy."""

    text: Tensor
    test_text: Tensor
    start: BanditPolicy
    context: int
    kl_weight: float

    @classmethod
    def load(cls, settings: RlSettings) -> "LmBandit":
        """Read the text, and pretrain the initial model.

        Raises:
            UserError: the model is unknown, or the text is missing or too short.
        """
        text, context = _read(settings), settings.context_len
        if settings.model_name == MODEL:
            codes, vocabulary = encode(text)
        else:
            tokenize, model = hf_model(settings.model_name)
            codes = tokenize(text)
        cut = len(codes) - len(codes) // _TEST_SHARE
        if len(codes) - cut <= context:
            raise UserError(
                f"--data: {settings.data or 'the synthetic text'}: {len(codes)} tokens are too few "
                f"for a test set with contexts of {context} tokens"
            )
        if settings.model_name == MODEL:
            model = char_model(settings, codes[:cut], vocabulary)
        return cls(codes[:cut], codes[cut:], BanditPolicy(model), context, settings.kl_weight)

    @property
    def actions(self) -> int:
        return self.start.net.vocabulary

    @property
    def binary(self) -> bool:
        """Whether rewards are 0 or 1, i.e. there is no penalty."""
        return self.kl_weight == 0

    def policy(self) -> Policy:
        return self.start

    def draw(self, seeds: Sequence[int], step: object, count: int) -> Questions:
        room = len(self.text) - self.context
        return self._questions(self.text, draws.integers(seeds, "data", (step,), (count,), room))

    def examination(self) -> tuple[Questions, bool]:
        """Non-overlapping contexts."""
        begins = torch.arange(0, len(self.test_text) - self.context, self.context)
        return self._questions(self.test_text, begins[:_MOST_CONTEXTS].unsqueeze(0)), True

    def _questions(self, text: Tensor, begins: Tensor) -> Questions:
        return Questions(*windows(text, begins, self.context))

    def more(self, greedy: Sampled, questions: Questions) -> dict[str, Tensor]:
        """Perplexity, and the error rate in each tercile of the initial model's loss."""
        labels = questions.labels[:, :, None, None]
        wrong = 1.0 - self.rewards(greedy.actions, labels).flatten(1)
        losses = self._losses(questions)
        first, second = (losses.quantile(q, 1, keepdim=True) for q in (1 / 3, 2 / 3))
        inside = (losses <= first, (losses > first) & (losses <= second), losses > second)
        columns = {"perplexity": (-taken(greedy.table, labels).flatten(1).mean(1)).exp()}
        for level, mask in zip(_LEVELS, inside, strict=True):
            columns[f"error_{level}"] = (wrong * mask).sum(1) / mask.sum(1).clamp(min=1)
        return columns

    def _losses(self, questions: Questions) -> Tensor:
        return -taken(self._reference(questions.inputs), questions.labels[..., 0])

    def _reference(self, inputs: Tensor) -> Tensor:
        first = self.start.init(range(len(inputs)))
        return self.start.net.logits(first, inputs).log_softmax(-1)

    @torch.no_grad()
    def stated(self, policy: Policy, weights: Tensor, questions: Questions) -> Tensor:
        """The probability of the right token, minus the expected KL penalty."""
        answer = questions.labels[:, :, None, None]
        table = policy.table(weights, questions.inputs, answer)
        expected = taken(table, answer).exp()[:, :, 0, 0, 0]
        if not self.kl_weight:
            return expected
        now = table[:, :, 0, 0, 0]
        apart = now.exp() * (now - self._reference(questions.inputs))
        return expected - self.kl_weight * apart.sum(-1)

    @torch.no_grad()
    def adjust(self, rewards: Tensor, sampled: Sampled, questions: Questions) -> Tensor:
        """Rewards minus `kl_weight` times the log-ratio of current and initial policy."""
        if not self.kl_weight:
            return rewards
        reference = self._reference(questions.inputs)[:, :, None, None, None]
        before = taken(reference.expand(*sampled.actions.shape, -1), sampled.actions)
        return rewards - self.kl_weight * (sampled.logprobs - before)[..., 0, 0]


def _read(settings: RlSettings) -> str:
    made_up = settings.data is None
    return made_up_text(_SENTENCES, "lm_bandit") if made_up else user_text(Path(settings.data))


def made_up_text(sentences: int, name: str) -> str:
    """A synthetic text of `sentences` sentences, determined by `name`.

    Sentences are random patterns with random words. One pattern consists of two sentences, the
    second of which ends with `there`, so that the text has longer dependencies.
    """
    numbers = streams.generator("sandbox", "text", name)
    return " ".join(_sentence(numbers) for _ in range(sentences))


def _sentence(numbers: np.random.Generator) -> str:
    who, where, what, did, when = (
        str(numbers.choice(words)) for words in (_WHO, _WHERE, _WHAT, _DID, _WHEN)
    )
    pattern = int(numbers.integers(3))
    if pattern == 0:
        return f"{who} {did} {what} {where}."
    if pattern == 1:
        return f"{when}, {who} {did} {what}."
    return f"{who} went out {when}. {where}, {who} {did} {what} there."
