"""Defines a comparison's protocol, and computes the outcomes of every arm at every endpoint."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from hgrpo.errors import UserError
from hgrpo.evaluation.endpoint import (
    AREA,
    LAST_ROUND,
    endpoint_name,
    round_within,
    rounds_read,
)
from hgrpo.evaluation.outcomes import GREEDY, TEST, Outcomes, mean_outcomes, outcomes, select
from hgrpo.evaluation.settings import Budget, Endpoint, Score, StatisticsConfig

# Name and sampling temperature of an arm.
Arm = tuple[str, float]
# Outcomes of all arms at one endpoint.
Played = Mapping[Arm, Outcomes]


@dataclass(frozen=True)
class Protocol:
    """The arms to compare, and the settings of the statistics.

    Attributes:
        reference: arm with which the other trained arms are compared. There are no verdicts
            against an arm that is not in `methods`.
        untrained: arm of the supervised policy, evaluated at several temperatures, or None.
        methods: arms in display order; further arms with episodes are appended.
        step_trajectories: maps trained arms to the number of training trajectories per step.
        twin: A/A twin of the reference, which differs only in its random numbers, or None.
        settings: endpoint, score, thresholds, and settings of intervals and verdicts.
    """

    reference: str = "flatGRPO"
    untrained: str | None = "SFTOnly"
    methods: Sequence[str] = ()
    step_trajectories: Mapping[str, int] = field(default_factory=dict)
    twin: str | None = None
    settings: StatisticsConfig = field(default_factory=StatisticsConfig)

    @property
    def expects_reference(self) -> bool:
        """Whether the reference must have episodes: if `methods` is empty or includes it."""
        return not self.methods or self.reference in self.methods

    @property
    def level(self) -> float:
        return self.settings.confidence


def played_endpoints(
    episodes: pd.DataFrame,
    arms: Sequence[Arm],
    protocol: Protocol,
    last: Mapping[str, int],
    play: pd.DataFrame,
) -> dict[str, dict[Arm, Outcomes]]:
    """Compute the outcomes of each arm at each endpoint; the declared endpoint comes first.

    Args:
        last: maps each arm to its last round.
        play: cumulative number of trajectories of each run by round, required for a budget.

    Raises:
        UserError: episodes or `play` are missing, a run has fewer trajectories than the budget, or
            a run's first round exceeds the budget and there is no untrained arm.
    """
    test = episodes[episodes["panel"] == TEST]
    endpoints: dict[str, Endpoint] = {
        endpoint_name(endpoint): endpoint
        for endpoint in (protocol.settings.endpoint, AREA, LAST_ROUND)
    }

    def played(endpoint: Endpoint, method: str, temperature: float) -> Outcomes:
        if method == protocol.untrained:
            return mean_outcomes(test, method, [last[method]], temperature)
        if isinstance(endpoint, Budget):
            return _at_budget(test, method, endpoint.budget, play, protocol, last)
        rounds = rounds_read(endpoint, last[method])
        return mean_outcomes(test, method, rounds, temperature)

    return {
        name: {arm: played(endpoint, *arm) for arm in arms} for name, endpoint in endpoints.items()
    }


def others_than_declared(
    played: Mapping[str, Played], settings: StatisticsConfig, partial: bool
) -> Iterator[tuple[str, Score]]:
    """Yield all pairs (endpoint, score) except for the declared pair.

    If several endpoints have equal outcomes, as in a study with one round, only the first is used.
    The score `return` is included only if it is the declared score, or if episodes can earn partial
    reward (`partial`).
    """
    returns = partial or settings.score == "return"
    counted: tuple[Score, ...] = ("success", "return") if returns else ("success",)
    seen: list[Played] = []
    for name, outcomes_by_arm in played.items():
        if any(_equal(outcomes_by_arm, other) for other in seen):
            continue
        seen.append(outcomes_by_arm)
        for score in counted:
            if (name, score) != (endpoint_name(settings.endpoint), settings.score):
                yield name, score


def _at_budget(
    test: pd.DataFrame,
    method: str,
    budget: int,
    play: pd.DataFrame,
    protocol: Protocol,
    last: Mapping[str, int],
) -> Outcomes:
    """Outcomes of a trained arm after each seed's last round within the budget.

    If the first round exceeds the budget, the outcomes are those of the supervised policy.
    """
    parts = []
    for seed in sorted(test.loc[test["method"] == method, "seed"].unique()):
        mine = play[(play["method"] == method) & (play["seed"] == seed)].sort_values("round")
        run = f"{method}, seed {seed}"
        if mine.empty:
            raise UserError(f"{run}: train logs are missing; a budget endpoint requires them")
        try:
            number = round_within(budget, mine["trajectories"].astype(int).tolist())
        except ValueError as error:
            raise UserError(f"--config: endpoint: {run}: {error}") from None
        if not number and protocol.untrained not in last:
            raise UserError(
                f"--config: endpoint: {run}: the first round exceeds {budget:,} trajectories, and "
                "the study has no untrained arm whose results could be used instead"
            )
        arm, number = (method, number) if number else (protocol.untrained, last[protocol.untrained])
        chosen = select(test, arm, number, GREEDY)
        chosen = chosen[chosen["seed"] == seed]
        if chosen.empty:
            raise UserError(f"{arm}, seed {seed}: no test episodes of round {number}")
        parts.append(chosen)
    return outcomes(pd.concat(parts))


def _equal(one: Played, other: Played) -> bool:
    return all(
        np.array_equal(one[arm].success, other[arm].success)
        and np.array_equal(one[arm].returns, other[arm].returns)
        for arm in one
    )
