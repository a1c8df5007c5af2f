"""Base classes of update rules: settings, requirements and loss."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from hgrpo.config.strict import Strict
from hgrpo.formulas.batch import Rollout, Seen, Term
from hgrpo.formulas.tensors import Tensor, check_shapes

Run = TypeVar("Run")
# Names of requirements that several rules share.
GROUPS = ("groups", "no_replay")
CANDIDATES = ("token_rewards", "groups", "on_policy", "clean", "no_diagnostics")


class Rule(Strict, ABC):
    """An update rule. Its fields are its settings. Concrete subclasses are registered by name.

    The first sentence of a rule's docstring describes the rule. The rest says which parts of its
    paper are kept, changed or omitted. `hgrpo.cli.sandbox` reproduces the commands of "the
    original sandbox".

    Attributes:
        piece: the part of the sandbox that uses the rule, e.g. "rl"; "" for none.
        agents: whether the rule can train agents.
        agents_lack: what the rule requires but agents' tasks do not provide; "" for none.
        needs: names of the rule's requirements in `NEEDS` of `hgrpo.sandbox.<piece>.settings`.
        of_training: maps settings of the rule to the keys of `training` that contain their values.
        grouped: whether the rule compares the rollouts of a group.
        oracle: whether the rule uses log-probs of actions along the correct answer.
        candidates: whether the rule uses several candidate tokens per prefix.
        screens: whether the rule's method `screen` selects rollouts for the update.
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
        """The loss of each seed, and metrics to log."""

    def token_credit(self, seen: Seen) -> Tensor | None:
        """The rule's own advantages [S, N, K, M, T], or None for rewards minus the baseline."""

    def screen(self, rollout: Rollout, uniform: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return 1 for rollouts in the update and 0 for others, [S, N, K], and metrics to log.

        Args:
            uniform: one uniform random number in [0, 1) for each rollout, [S, N * K].
        """
        raise NotImplementedError


class TokenRule(Rule):
    """Base class of rules whose loss is a weighted sum of per-token terms."""

    @abstractmethod
    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        """The loss of each token. All tensors have the same shape.

        Args:
            old: log-probs at sampling time or, for agents, at the start of the update.
        """

    def clipped(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor | None:
        """Fraction of tokens with gradient 0 due to clipping; None for rules without a clip."""

    def columns(self, seen: Seen) -> Mapping[str, Tensor]:
        """Metrics, [S, N, K, M, T] each, whose means are logged."""
        return {}

    def term(self, seen: Seen) -> Term:
        terms = self.terms(seen.logprobs, seen.rollout.behaviour, seen.advantages)
        check_shapes(terms, seen.logprobs)
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

    A run that violates a `degenerate` requirement is valid, but it has the same results as another
    arm, or one of its settings has no effect.
    """

    text: str
    met: Callable[[Run], bool]
    degenerate: bool = False


def refuse(rule: Rule, needs: Mapping[str, Need], run: object, allow_degenerate: bool) -> list[str]:
    """Check that a run meets the requirements of the rule.

    Returns:
        One line per violated `degenerate` requirement, if `allow_degenerate`.

    Raises:
        ValueError: a violated requirement is not `degenerate`, or `allow_degenerate` is False.
    """
    notes = []
    if unknown := set(rule.needs) - needs.keys():
        raise ValueError(f"{type(rule).__name__}: unknown names in `needs`: {', '.join(unknown)}")
    for need in (needs[name] for name in rule.needs):
        if need.met(run):
            continue
        line = f"{type(rule).__name__} requires {need.text}"
        if not (need.degenerate and allow_degenerate):
            raise ValueError(line)
        notes.append(line)
    return notes
