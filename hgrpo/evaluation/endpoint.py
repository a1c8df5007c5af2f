"""The rounds of an endpoint: an arm's score is the mean over their evaluations."""

from collections.abc import Sequence

from hgrpo.evaluation.settings import Budget, Endpoint

AREA, LAST_ROUND = "area", "last_round"


def rounds_read(endpoint: Endpoint, rounds: int) -> range:
    """The rounds, counted from 1, whose greedy test evaluations make up a trained arm's score.

    `area` reads all rounds: their mean is the area under the learning curve, divided by its length.

    Args:
        endpoint: `area` or `last_round`; for a budget see `round_within`.
        rounds: number of rounds of the arm.
    """
    return range(1 if endpoint == AREA else rounds, rounds + 1)


def round_within(budget: int, played: Sequence[int]) -> int:
    """The last round that ends within a budget of trajectories.

    It is 0 if the first round took more: the run still holds the policy that it started from.

    Args:
        budget: number of trajectories.
        played: all trajectories that the run has played when each round ends, in order.

    Raises:
        ValueError: the run ended before it had played so many.
    """
    if budget > played[-1]:
        raise ValueError(
            f"{budget:,} trajectories are more than it played in {_rounds(len(played))}, "
            f"{played[-1]:,}"
        )
    return sum(number <= budget for number in played)


def check_budget(budget: int, rounds: int, trajectories: int) -> None:
    """Refuse a budget that an arm may not reach, or that no arm could learn from.

    Args:
        budget: number of trajectories.
        rounds: number of rounds of the arm.
        trajectories: number that the arm plays in a round at least: those that it trains on.

    Raises:
        ValueError: the budget ends before the arm's first round, or after its last.
    """
    if budget < trajectories:
        raise ValueError(
            f"{budget:,} trajectories are fewer than its first round's {trajectories:,}"
        )
    if budget > rounds * trajectories:
        raise ValueError(
            f"{budget:,} trajectories are more than it trains on in {_rounds(rounds)}, "
            f"{rounds * trajectories:,}"
        )


def endpoint_name(endpoint: Endpoint) -> str:
    """The endpoint's name in tables: `area`, `last_round` or `budget_<trajectories>`."""
    return f"budget_{endpoint.budget}" if isinstance(endpoint, Budget) else endpoint


def _rounds(number: int) -> str:
    return f"{number} round{'s' if number > 1 else ''}"
