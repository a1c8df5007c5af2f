"""The reward of a turn.

The rules of gym-sokoban: -0.1 per action, +1 for each box moved onto a target, -1 for each box
moved off a target, +10 when all boxes are on targets. A solution of n actions thus returns 10 - 0.1
n plus 1 for each box moved onto a target. RAGEN subtracts 0.1 for an invalid reply.

Under these rules, an agent loses 1.0 by trying all ten actions without success, but only 0.5 by
five turns without actions, so giving up is rewarded. `fair` therefore charges the whole action
budget in the first turn and refunds the remainder in the solving turn. Returns of solved episodes
are unchanged. The return of a lost episode depends only on the last board, minus 0.1 for each
invalid reply, even if the episode is truncated, e.g. by a full context.
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
    """The reward of one turn.

    Args:
        budget: maximum number of actions of an episode.
        before: number of actions in earlier turns.
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
