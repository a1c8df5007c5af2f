"""Outcomes of every arm at every endpoint of a study."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from hgrpo.errors import UserError
from hgrpo.evaluation import scores
from hgrpo.evaluation.endpoint import (
    AREA,
    LAST_ROUND,
    endpoint_name,
    round_within,
    rounds_read,
)
from hgrpo.evaluation.outcomes import GREEDY, TEST, Outcomes, outcomes, select
from hgrpo.evaluation.protocol import Protocol
from hgrpo.evaluation.settings import Budget, Endpoint, Score, StatisticsConfig

# An arm's name and the temperature at which it plays.
Arm = tuple[str, float]
# Outcomes of one endpoint.
Played = Mapping[Arm, Outcomes]


def played_endpoints(
    episodes: pd.DataFrame,
    arms: Sequence[Arm],
    protocol: Protocol,
    last: Mapping[str, int],
    play: pd.DataFrame,
) -> dict[str, dict[Arm, Outcomes]]:
    """Name of each endpoint -> arm -> outcomes; the declared endpoint is first.

    Args:
        last: arm -> its last round.
        play: the trajectories that each run has played when a round ends; only a budget reads it.

    Raises:
        UserError: the budget is not within a run's rounds, or episodes or numbers are missing.
    """
    test = episodes[episodes["panel"] == TEST]
    asked: dict[str, Endpoint] = {
        endpoint_name(endpoint): endpoint
        for endpoint in (protocol.settings.endpoint, AREA, LAST_ROUND)
    }

    def played(endpoint: Endpoint, method: str, temperature: float) -> Outcomes:
        if method == protocol.untrained:
            return scores.mean_outcomes(test, method, [last[method]], temperature)
        if isinstance(endpoint, Budget):
            return _at_budget(test, method, endpoint.budget, play, protocol, last)
        rounds = rounds_read(endpoint, last[method])
        return scores.mean_outcomes(test, method, rounds, temperature)

    return {name: {arm: played(endpoint, *arm) for arm in arms} for name, endpoint in asked.items()}


def others_than_declared(
    played: Mapping[str, Played], settings: StatisticsConfig, partial: bool
) -> Iterator[tuple[str, Score]]:
    """(endpoint, score) of what stands beside the declared endpoint.

    Endpoints with equal outcomes, such as all endpoints of a single round, appear once. Returns
    appear if `partial` says that an episode can pay in part, or if they are the declared score.
    """
    returns = partial or settings.score == "return"
    shown: tuple[Score, ...] = ("success", "return") if returns else ("success",)
    seen: list[Played] = []
    for name, found in played.items():
        if any(_equal(found, other) for other in seen):
            continue
        seen.append(found)
        for score in shown:
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
    """Outcomes of a trained arm after the last round of each seed that is within the budget.

    A run whose first round took more than the budget is still the supervised policy.
    """
    parts = []
    for seed in sorted(test.loc[test["method"] == method, "seed"].unique()):
        mine = play[(play["method"] == method) & (play["seed"] == seed)].sort_values("round")
        run = f"{method}, seed {seed}"
        if mine.empty:
            raise UserError(f"{run}: no train logs, from which a budget counts what it has played")
        try:
            number = round_within(budget, mine["trajectories"].astype(int).tolist())
        except ValueError as error:
            raise UserError(f"--config: endpoint: {run}: {error}") from None
        if not number and protocol.untrained not in last:
            raise UserError(
                f"--config: endpoint: {run}: its first round took more than {budget:,} "
                "trajectories, and the study has no arm of the policy that it started from"
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
