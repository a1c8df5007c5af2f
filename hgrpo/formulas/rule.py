"""Base classes of update rules: settings, requirements and loss."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from hgrpo.config.strict import Strict
from hgrpo.formulas.batch import Rollout, Seen, Term
from hgrpo.formulas.tensors import Tensor

Run = TypeVar("Run")
# Names of requirements that several rules share.
GROUPS = ("groups", "no_replay")
CANDIDATES = ("token_rewards", "groups", "on_policy", "clean", "no_diagnostics")


class Rule(Strict, ABC):
    """An update rule; its fields are its settings. Concrete subclasses are registered by name.

    The first sentence of a rule's docstring describes its effect. The rest lists the parts of the
    source that are kept, changed or omitted. "The original" is the sandbox with the command line of
    `hgrpo.cli.sandbox`.

    Attributes:
        piece: the piece of the sandbox that uses the rule, or "".
        agents: whether it can train agents.
        agents_lack: the requirement that agents' tasks do not meet, or "".
        needs: names of its requirements; see the settings of its piece.
        of_training: maps the names of settings taken from the study's `training` to the keys there.
        grouped: whether it compares the rollouts of a group.
        oracle: whether it uses log-probs along the correct answer.
        candidates: whether it uses several candidate tokens per prefix.
        screens: whether `screen` selects rollouts for the update.
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
        """The loss of each seed, and log columns."""

    def token_credit(self, seen: Seen) -> Tensor | None:
        """The rule's own advantage of each token, [S, N, K, M, T]; None: use the run's."""

    def screen(self, rollout: Rollout, uniform: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """1 for rollouts included in the update, [S, N, K], and log columns.

        Args:
            uniform: uniform draws from [0, 1), one per rollout, [S, N * K].
        """
        raise NotImplementedError


class TokenRule(Rule):
    """Base class of rules whose loss is a weighted sum of per-token terms."""

    @abstractmethod
    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        """The terms of the loss; all tensors have the same shape.

        Args:
            old: log-probs at sampling time or, for agents, at the start of the update.
        """

    def clipped(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor | None:
        """Fraction of tokens with gradient 0 due to clipping; None for rules without a clip."""

    def columns(self, seen: Seen) -> Mapping[str, Tensor]:
        """Values to log as means, by column, [S, N, K, M, T] each."""
        return {}

    def term(self, seen: Seen) -> Term:
        terms = self.terms(seen.logprobs, seen.rollout.behaviour, seen.advantages)
        return Term(seen.mean(terms), seen.means(self.columns(seen)))


class GroupRule(Rule):
    """Base class of rules whose loss is a mean over groups, computed from whole rollouts."""

    grouped = True

    @abstractmethod
    def loss(self, scores: Tensor, old: Tensor, skills: Tensor) -> Tensor:
        """The loss of each group, [...].

        Args:
            scores: log-probs of whole rollouts, [..., K].
            old: log-probs at sampling time, [..., K].
            skills: advantages, [..., K].
        """


@dataclass(frozen=True)
class Need(Generic[Run]):
    """A requirement of a rule: its description, and a check of the run.

    A run that violates a `degenerate` requirement is valid, but it equals another arm, or one of
    its settings has no effect.
    """

    text: str
    met: Callable[[Run], bool]
    degenerate: bool = False


def refuse(rule: Rule, needs: Mapping[str, Need], run: object, allow_degenerate: bool) -> list[str]:
    """Refuse a run that does not meet the requirements of the rule.

    Returns:
        One line per violated degenerate requirement, if these are allowed.

    Raises:
        ValueError: a requirement is not met.
    """
    notes = []
    for need in (needs[name] for name in rule.needs):
        if need.met(run):
            continue
        line = f"{type(rule).__name__} requires {need.text}"
        if not (need.degenerate and allow_degenerate):
            raise ValueError(line)
        notes.append(line)
    return notes
