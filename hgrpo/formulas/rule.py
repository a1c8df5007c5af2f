"""The base of update rules: settings, needs and loss."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from hgrpo.config.strict import Strict
from hgrpo.formulas.batch import Rollout, Seen, Term
from hgrpo.formulas.tensors import Tensor

Run = TypeVar("Run")
# Names of needs that several rules have.
GROUPS = ("groups", "no_replay")
CANDIDATES = ("token_rewards", "groups", "on_policy", "clean", "no_diagnostics")


class Rule(Strict, ABC):
    """An update rule; its fields are its settings, and a class without abstract methods has a name.

    The first sentence of a rule's docstring states its effect. The others state what it keeps of
    its source, and what it changes. "The original" is the sandbox whose commands
    `hgrpo.cli.sandbox` takes.

    Attributes:
        piece: the piece of the sandbox that trains by it; "" if none does.
        agents: whether it trains agents.
        agents_lack: the need that no agent's task meets; "" if there is none.
        needs: names of its needs; the settings of its piece explain them.
        of_training: its settings that agents read from the study's `training`, by their name there.
        grouped: whether it compares the rollouts of a group.
        oracle: whether it reads log-probs along the right answer.
        candidates: whether it reads further tokens that were drawn at every prefix.
        screens: whether `screen` decides which rollouts take part.
    """

    piece: ClassVar[str] = "rl"
    agents: ClassVar[bool] = False
    agents_lack: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    of_training: ClassVar[Mapping[str, str]] = {}
    grouped: ClassVar[bool] = False
    oracle: ClassVar[bool] = False
    candidates: ClassVar[bool] = False
    screens: ClassVar[bool] = False

    @abstractmethod
    def term(self, seen: Seen) -> Term:
        """The loss of each seed, and columns of the log."""

    def token_credit(self, seen: Seen) -> Tensor | None:
        """Its own advantage of each token, [S, N, K, M, T]; None if it takes the run's."""

    def screen(self, rollout: Rollout, uniform: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """1 for rollouts that take part, [S, N, K], and columns of the log.

        Args:
            uniform: a draw from [0, 1) for each rollout, [S, N * K].
        """
        raise NotImplementedError


class TokenRule(Rule):
    """A rule whose loss is a weighted sum of single tokens' terms."""

    @abstractmethod
    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        """The terms of the loss; all tensors have one shape.

        Args:
            old: log-probs when the tokens were sampled, or at the start of an agent's update.
        """

    def clipped(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor | None:
        """The share of tokens whose gradient a clip sets to 0; None if the rule clips nothing."""

    def columns(self, seen: Seen) -> Mapping[str, Tensor]:
        """Values whose means go to the log, by column, [S, N, K, M, T] each."""
        return {}

    def term(self, seen: Seen) -> Term:
        terms = self.terms(seen.logprobs, seen.rollout.behaviour, seen.advantages)
        return Term(seen.mean(terms), seen.means(self.columns(seen)))


class GroupRule(Rule):
    """A rule whose loss is the mean over groups of a function of whole rollouts."""

    grouped = True

    @abstractmethod
    def loss(self, scores: Tensor, old: Tensor, skills: Tensor) -> Tensor:
        """The loss of each group, [...].

        Args:
            scores: log-probs of whole rollouts, [..., K].
            old: the same when they were sampled.
            skills: their advantages.
        """


@dataclass(frozen=True)
class Need(Generic[Run]):
    """A need of a rule: its description, and whether a run meets it.

    Without a `degenerate` need a run still computes, but its arm equals another one, or one of its
    settings has no effect.
    """

    text: str
    met: Callable[[Run], bool]
    degenerate: bool = False


def refuse(rule: Rule, needs: Mapping[str, Need], run: object, allow_degenerate: bool) -> list[str]:
    """Refuse a run that does not meet the needs of the rule.

    Returns:
        a line for each degenerate need that is not met, if these are allowed.

    Raises:
        ValueError: a need is not met; the message names the rule and what it needs.
    """
    notes = []
    for need in (needs[name] for name in rule.needs):
        if need.met(run):
            continue
        line = f"{type(rule).__name__} needs {need.text}"
        if not (need.degenerate and allow_degenerate):
            raise ValueError(line)
        notes.append(line)
    return notes
