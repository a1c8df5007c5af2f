"""Rules as data, and the one validator that compares what a rule needs with what a run gives."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hgrpo.config.read import did_you_mean
from hgrpo.config.strict import Strict

Run = TypeVar("Run")


class NoSettings(Strict):
    """Settings of a rule that has none."""


@dataclass(frozen=True)
class Rule:
    """One update rule.

    `term` and `screen` name a module and a function in the piece's package of rules, such as
    "dg.dg"; they are imported when they are called, so that a listing of rules loads no torch. A
    term takes a `hgrpo.sandbox.rollout.Seen` and the rule's settings, and returns a `Term`. A
    screen decides before the update which rollouts take part.

    `flags` says which flag of the command line gives which of the rule's settings.
    """

    name: str
    term: str
    needs: tuple[str, ...] = ()
    settings: type[Strict] = NoSettings
    flags: Mapping[str, str] = field(default_factory=dict)
    screen: str | None = None
    # Whether the group's rollouts are compared with each other.
    grouped: bool = False
    # Whether the term reads log-probs along the right answer, and candidates at every prefix.
    oracle: bool = False
    candidates: bool = False

    @property
    def functions(self) -> list[str]:
        """The functions that it names, the term first."""
        return [name for name in (self.term, self.screen) if name]

    def load(self, package: str, function: str) -> Callable:
        """The function `term` or `screen` from the package that holds the piece's rules."""
        module, name = function.split(".")
        return getattr(importlib.import_module(f"{package}.{module}"), name)


def spelled_out(rule: Rule, given: Mapping[str, Any]) -> dict[str, Any]:
    """The rule's settings from those that are `given`, with every default filled in.

    Raises:
        ValueError: a key is unknown, or a value is refused.
    """
    known = rule.settings.model_fields
    for key in given:
        if key not in known:
            raise ValueError(f"{rule.name} has no {key!r}{did_you_mean(key, known)}")
    return rule.settings.model_validate(given).model_dump()


@dataclass(frozen=True)
class Need(Generic[Run]):
    """Something that a rule may need of a run: its description, and whether a run gives it.

    A run without a `degenerate` need computes something, but not what the rule is for: its arm
    equals another one, or a switch of it can never act.
    """

    text: str
    given: Callable[[Run], bool]
    degenerate: bool = False


def unmet(names: Sequence[str], needs: Mapping[str, Need], run: object) -> list[Need]:
    """Those of the named needs that the run does not give."""
    return [needs[name] for name in names if not needs[name].given(run)]


def refuse(rule: Rule, needs: Mapping[str, Need], run: object, allow_degenerate: bool) -> list[str]:
    """Refuse a run that lacks what the rule needs.

    Returns:
        a line for each degenerate need that is not met, if these are allowed.

    Raises:
        ValueError: a need is not met; the message names the rule and what it needs.
    """
    notes = []
    for need in unmet(rule.needs, needs, run):
        line = f"{rule.name} needs {need.text}"
        if not (need.degenerate and allow_degenerate):
            raise ValueError(line)
        notes.append(line)
    return notes
