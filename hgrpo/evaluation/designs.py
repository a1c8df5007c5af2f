"""What the arms of a study differ in: is it a sweep of alpha, or a factorial?

Both are read off the settings alone, so that the workflow knows before anything runs which
figures and tables there will be.
"""

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from hgrpo.credit.section import CreditConfig

# What any two arms may differ in without playing or learning differently.
WORDS = {"name", "label"}
# At alpha 1 the turn's advantage has no weight, so whatever makes it has no say.
OF_THE_TURN = {"credit", "turn_norm"}
CREDIT = "credit"

FACTORS: dict[str, Callable[[Mapping], Hashable]] = {
    CREDIT: lambda arm: arm["credit"]["kind"],
    "rollouts_per_task": lambda arm: arm["training"]["rollouts_per_task"],
    "lr": lambda arm: arm["training"]["lr"],
    "dead_groups": lambda arm: arm["dead_groups"],
}


@dataclass(frozen=True)
class Factorial:
    """Arms that are the cells of a full factorial with two levels of each factor.

    Attributes:
        factors: factor -> (the reference arm's level, the other level).
        cells: arm -> factor -> its level.
    """

    factors: dict[str, tuple[Hashable, Hashable]]
    cells: dict[str, dict[str, Hashable]]

    def signs(self, *factors: str) -> dict[str, int]:
        """Arm -> +1 or -1: the contrast of one factor, or of the interaction of several.

        A factor's own sign is -1 at the reference arm's level; an interaction's is the product.
        """
        return {
            arm: prod(1 if cell[name] == self.factors[name][1] else -1 for name in factors)
            for arm, cell in self.cells.items()
        }

    @property
    def contrasts(self) -> list[tuple[str, ...]]:
        """Every main effect, then every two-factor interaction with the credit assigner."""
        main = [(name,) for name in self.factors]
        others = [name for name in self.factors if name != CREDIT]
        return main + [(CREDIT, name) for name in others if CREDIT in self.factors]


def alpha_sweep(methods: Mapping[str, Mapping]) -> dict[str, float]:
    """Trained arm -> alpha, ascending, where the arms differ in alpha only; empty elsewhere.

    A sweep has three values or more, each once. An arm with alpha 1 belongs to it whatever its
    credit assigner is: it is flat GRPO.

    Args:
        methods: arm -> its settings, as the figures stage has them (`hgrpo.workflow.stage_config`).
    """
    arms = _trained(methods)
    alphas = {name: float(arm["alpha"]) for name, arm in arms.items()}
    blended = {_text(arm, WORDS | {"alpha"}) for name, arm in arms.items() if alphas[name] < 1}
    shared = {_text(arm, WORDS | {"alpha"} | OF_THE_TURN) for arm in arms.values()}
    each_once = len(set(alphas.values())) == len(alphas) >= 3
    if not each_once or len(blended) > 1 or len(shared) > 1:
        return {}
    return dict(sorted(alphas.items(), key=lambda item: item[1]))


def factorial(methods: Mapping[str, Mapping], reference: str) -> Factorial | None:
    """The factorial that all trained arms make up, if they do.

    Two or more of `FACTORS` with two levels each, every combination once, and nothing else that
    could explain a difference: any other setting that differs follows one of the factors, as
    alpha follows the credit assigner, or tasks per step the group size.

    Args:
        methods: arm -> its settings, as the figures stage has them.
        reference: the arm whose levels are departed from.
    """
    arms = _trained(methods)
    if reference not in arms:
        return None
    factors = {}
    for name, level_of in FACTORS.items():
        own = level_of(arms[reference])
        others = {level_of(arm) for arm in arms.values()} - {own}
        if len(others) > 1:
            return None
        if others:
            factors[name] = (own, others.pop())
    cells = {arm: {name: FACTORS[name](arms[arm]) for name in factors} for arm in arms}
    found = sorted((tuple(cell.values()) for cell in cells.values()), key=repr)
    if len(factors) < 2 or found != sorted(product(*factors.values()), key=repr):
        return None
    return Factorial(factors, cells) if _nothing_else_differs(arms, cells) else None


def with_figure(methods: Mapping[str, Mapping], figure: str) -> list[str]:
    """Trained arms whose credit declares a figure of its own."""
    return [
        name
        for name, arm in _trained(methods).items()
        if figure in CreditConfig(**arm["credit"]).declared.figures
    ]


def _trained(methods: Mapping[str, Mapping]) -> dict[str, Mapping]:
    return {name: arm for name, arm in methods.items() if arm["train"]}


def _text(arm: Mapping, without: set[str] = frozenset()) -> str:
    return json.dumps({key: arm[key] for key in sorted(arm) if key not in without}, sort_keys=True)


def _nothing_else_differs(arms: Mapping[str, Mapping], cells: Mapping[str, Mapping]) -> bool:
    flat = {
        name: {key: value for key, value in arm.items() if key not in WORDS | {"training"}}
        | {f"training.{key}": value for key, value in arm["training"].items()}
        for name, arm in arms.items()
    }
    keys = {key for settings in flat.values() for key in settings}
    factors = list(next(iter(cells.values())))
    return all(
        any(_follows(key, factor, flat, cells) for factor in factors) for key in sorted(keys)
    )


def _follows(key: str, factor: str, flat: Mapping, cells: Mapping) -> bool:
    """Whether a setting is the same in all arms with the same level of a factor."""
    seen: dict[Hashable, str] = {}
    for arm, settings in flat.items():
        text = json.dumps(settings.get(key), sort_keys=True)
        if seen.setdefault(cells[arm][factor], text) != text:
            return False
    return True
