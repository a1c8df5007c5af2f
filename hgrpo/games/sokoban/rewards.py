"""Computes the reward of a turn.

In gym-sokoban, the reward is -0.1 per action, +1 for each box moved onto a target, -1 for each box
moved off a target, and +10 when all boxes are on targets. A solution of n actions therefore has the
return 10 - 0.1 n, plus 1 for each box moved onto a target. RAGEN also subtracts 0.1 for an invalid
reply.

With these rewards, an agent that tries all ten actions without success loses 1.0, but an agent that
plays five turns without actions loses only 0.5. Giving up is therefore rewarded. The setting `fair`
avoids this: the cost of all ten actions is charged in the first turn, and the cost of unused
actions is refunded in the turn that solves the level. The returns of solved episodes do not change.
The return of a lost episode depends only on its last board and on the number of invalid replies
(-0.1 each), even if the episode is truncated, e.g. by a full context.
"""

from hgrpo.games.sokoban.settings import Penalties

ACTION, NOT_UNDERSTOOD, PLACED, SOLVED = -0.1, -0.1, 1.0, 10.0


def turn_reward(
    penalties: Penalties,
    budget: int,
    before: int,
    taken: int,
    understood: bool,
    placed: int,
    solved: bool,
    first: bool,
) -> float:
    """Return the reward of one turn.

    Args:
        budget: maximum number of actions in an episode.
        before: number of actions in all earlier turns.
        taken: number of actions in this turn.
        placed: change in the number of boxes on targets.
        first: whether this is the first turn of the episode.
    """
    if penalties == "ragen":
        paid = ACTION * taken
    else:
        paid = (ACTION * budget if first else 0.0) - (
            ACTION * (budget - before - taken) if solved else 0.0
        )
    if not understood:
        paid += NOT_UNDERSTOOD
    return paid + PLACED * placed + (SOLVED if solved else 0.0)
