"""Detects whether the arms of a study form an alpha sweep, a factorial or a dose series.

Detection uses only settings, so that the workflow can list figures and tables before a study runs.
"""

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from hgrpo.credit.kinds import CreditConfig

# Settings of an arm that affect neither play nor learning.
WORDS = {"name", "label"}
# Settings that have no effect if alpha is 1, because turn advantages then have weight 0.
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
    """A full factorial with two levels per factor; each arm is one cell.

    Attributes:
        factors: maps each factor to (level of the reference arm, other level).
        cells: maps each arm to its level of each factor.
    """

    factors: dict[str, tuple[Hashable, Hashable]]
    cells: dict[str, dict[str, Hashable]]

    def signs(self, *factors: str) -> dict[str, int]:
        """Sign (+1 or -1) of each arm in a contrast, i.e. a main effect or an interaction.

        The sign of a main effect is -1 at the reference arm's level. The sign of an interaction is
        the product of its factors' signs.
        """
        return {
            arm: prod(1 if cell[name] == self.factors[name][1] else -1 for name in factors)
            for arm, cell in self.cells.items()
        }

    @property
    def contrasts(self) -> list[tuple[str, ...]]:
        """Factors of each contrast: main effects, then interactions with the credit assigner."""
        main = [(name,) for name in self.factors]
        others = [name for name in self.factors if name != CREDIT]
        return main + [(CREDIT, name) for name in others if CREDIT in self.factors]


def alpha_sweep(methods: Mapping[str, Mapping]) -> dict[str, float]:
    """Map trained arms to alpha, in ascending order of alpha; empty if they do not form a sweep.

    A sweep has at least three arms, which have distinct values of alpha and otherwise equal
    settings, except for names and labels. An arm with alpha 1 (flat GRPO) may also differ in
    `credit` and `turn_norm`. `methods` (arm -> settings) is from
    `hgrpo.stages.comparison.comparison`.
    """
    arms = trained(methods)
    alphas = {name: float(arm["alpha"]) for name, arm in arms.items()}
    blended = {_text(arm, WORDS | {"alpha"}) for name, arm in arms.items() if alphas[name] < 1}
    shared = {_text(arm, WORDS | {"alpha"} | OF_THE_TURN) for arm in arms.values()}
    each_once = len(set(alphas.values())) == len(alphas) >= 3
    if not each_once or len(blended) > 1 or len(shared) > 1:
        return {}
    return dict(sorted(alphas.items(), key=lambda item: item[1]))


def factorial(methods: Mapping[str, Mapping], reference: str) -> Factorial | None:
    """The factorial design of the trained arms; None if they do not form one.

    At least two of `FACTORS` must vary, each with two levels, and every combination of levels must
    occur in exactly one arm. Any other setting may vary only as a function of one factor: alpha may
    depend on the credit assigner, for example. The levels of the arm `reference` are the baseline.
    """
    arms = trained(methods)
    if reference not in arms:
        return None
    factors = {}
    for name, level_of in FACTORS.items():
        reference_level = level_of(arms[reference])
        others = {level_of(arm) for arm in arms.values()} - {reference_level}
        if len(others) > 1:
            return None
        if others:
            factors[name] = (reference_level, others.pop())
    cells = {arm: {name: FACTORS[name](arms[arm]) for name in factors} for arm in arms}
    combinations = sorted((tuple(cell.values()) for cell in cells.values()), key=repr)
    if len(factors) < 2 or combinations != sorted(product(*factors.values()), key=repr):
        return None
    return Factorial(factors, cells) if _nothing_else_differs(arms, cells) else None


def with_figure(methods: Mapping[str, Mapping], figure: str) -> list[str]:
    """Trained arms whose credit assigner has `figure` in its `figures`."""
    return [
        name
        for name, arm in trained(methods).items()
        if figure in CreditConfig(**arm["credit"]).declared.figures
    ]


def fitted(methods: Mapping[str, Mapping]) -> list[str]:
    """Trained arms whose credit assigner learns between rounds."""
    return [
        name
        for name, arm in trained(methods).items()
        if CreditConfig(**arm["credit"]).declared.fits
    ]


def trained(methods: Mapping[str, Mapping]) -> dict[str, Mapping]:
    """The arms that are trained by reinforcement learning."""
    return {name: arm for name, arm in methods.items() if arm["train"]}


def doses(methods: Mapping[str, Mapping]) -> dict[str, float]:
    """Map trained arms to the correlation of their credit with the oracle's credit.

    Arms are in ascending order of this correlation. The result is empty if there are fewer than two
    distinct correlations. `methods` (arm -> settings) is from `hgrpo.stages.comparison.comparison`.
    """
    correlations = {
        name: CreditConfig(**arm["credit"]).declared.correlation_with_oracle
        for name, arm in trained(methods).items()
    }
    known = {name: value for name, value in correlations.items() if value is not None}
    if len(set(known.values())) < 2:
        return {}
    return dict(sorted(known.items(), key=lambda item: item[1]))


def _text(arm: Mapping, without: set[str]) -> str:
    return json.dumps({key: arm[key] for key in sorted(arm) if key not in without}, sort_keys=True)


def _nothing_else_differs(arms: Mapping[str, Mapping], cells: Mapping[str, Mapping]) -> bool:
    flat = {
        name: {key: value for key, value in arm.items() if key not in WORDS | {"training"}}
        | {f"training.{key}": value for key, value in arm["training"].items()}
        for name, arm in arms.items()
    }
    factors = list(next(iter(cells.values())))

    def follows(key: str, factor: str) -> bool:
        """Whether the setting is constant within each of the factor's two levels."""
        texts = {
            arm: json.dumps(settings.get(key), sort_keys=True) for arm, settings in flat.items()
        }
        return len({(cells[arm][factor], text) for arm, text in texts.items()}) == 2

    keys = {key for settings in flat.values() for key in settings}
    return all(any(follows(key, factor) for factor in factors) for key in keys)
