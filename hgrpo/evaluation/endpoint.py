"""Determines the rounds whose evaluations are averaged into an arm's score at the endpoint."""

from collections.abc import Sequence

from hgrpo.evaluation.settings import Budget, Endpoint

AREA, LAST_ROUND = "area", "last_round"


def rounds_read(endpoint: Endpoint, rounds: int) -> range:
    """Rounds, counted from 1, whose greedy test evaluations are averaged for a trained arm's score.

    `area` uses all rounds: their mean is the normalised area under the learning curve (AUC).

    Args:
        endpoint: `area` or `last_round`; for a budget see `round_within`.
        rounds: number of rounds of the arm.
    """
    return range(1 if endpoint == AREA else rounds, rounds + 1)


def round_within(budget: int, played: Sequence[int]) -> int:
    """Last round that ends within a budget of trajectories; 0 (initial policy) if none does.

    Args:
        budget: number of trajectories.
        played: cumulative number of trajectories at the end of each round.

    Raises:
        ValueError: the run ended before it reached the budget.
    """
    if budget > played[-1]:
        raise ValueError(
            f"a budget of {budget:,} trajectories exceeds the {played[-1]:,} trajectories played "
            f"in {_rounds(len(played))}"
        )
    return sum(number <= budget for number in played)


def check_budget(budget: int, rounds: int, trajectories: int) -> None:
    """Reject a budget that an arm may not reach, or that ends before any training.

    Args:
        budget: number of trajectories.
        rounds: number of rounds of the arm.
        trajectories: number of training trajectories per round, the minimum that the arm plays.

    Raises:
        ValueError: the budget ends before the arm's first round, or after its last.
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
