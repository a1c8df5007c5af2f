"""Determines the rounds whose evaluations are averaged to get an arm's score at the endpoint."""

from collections.abc import Sequence

from hgrpo.evaluation.settings import Budget, Endpoint

AREA, LAST_ROUND = "area", "last_round"


def rounds_read(endpoint: Endpoint, rounds: int) -> range:
    """Rounds (from 1) over which the greedy test results of a trained arm are averaged.

    `area` is the mean over all rounds, the normalised area under the learning curve (AUC).

    Args:
        endpoint: `area` or `last_round`. For a budget, use `round_within` instead.
        rounds: number of rounds of the arm.
    """
    return range(1 if endpoint == AREA else rounds, rounds + 1)


def round_within(budget: int, played: Sequence[int]) -> int:
    """Last round that ends within a budget of trajectories; 0 if the first round exceeds it.

    Args:
        budget: number of trajectories.
        played: cumulative number of trajectories at the end of each round.

    Raises:
        ValueError: the run's total number of trajectories is below the budget.
    """
    if budget > played[-1]:
        raise ValueError(
            f"a budget of {budget:,} trajectories exceeds the {played[-1]:,} trajectories played "
            f"in {_rounds(len(played))}"
        )
    return sum(number <= budget for number in played)


def check_budget(budget: int, rounds: int, trajectories: int) -> None:
    """Check that a budget of trajectories is between one round and all rounds of an arm.

    Args:
        budget: number of trajectories.
        rounds: number of rounds of the arm.
        trajectories: number of training trajectories per round, without continuations.

    Raises:
        ValueError: the budget is smaller than one round, or larger than all rounds together.
    """
    if budget < trajectories:
        raise ValueError(
            f"a budget of {budget:,} trajectories is less than the {trajectories:,} trajectories "
            "of the first round"
        )
    if budget > rounds * trajectories:
        raise ValueError(
            f"a budget of {budget:,} trajectories exceeds the {rounds * trajectories:,} "
            f"trajectories of {_rounds(rounds)} of training"
        )


def endpoint_name(endpoint: Endpoint) -> str:
    """The endpoint's name in tables: `area`, `last_round` or `budget_<trajectories>`."""
    return f"budget_{endpoint.budget}" if isinstance(endpoint, Budget) else endpoint


def _rounds(number: int) -> str:
    return f"{number} round{'s' if number > 1 else ''}"
