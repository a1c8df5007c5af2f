"""The reward of a turn.

The rules of gym-sokoban: -0.1 an action, +1 for a box that comes onto a target, -1 for one that
leaves it, +10 when all stand on targets. So a solution of n actions returns 10 - 0.1 n and one for
each box that it brought. RAGEN takes 0.1 more for a reply that is not understood.

With these rules alone an agent loses 1.0 if it tries all ten actions in vain, and 0.5 if it names
none in five turns: to give up pays. `fair` therefore charges the whole budget of actions in
the first turn, and the solving turn pays back what is left. Solutions return what they did. A lost
episode returns the same for the same last board, however it was lost, and 0.1 less for each reply
that was not understood. This holds also if the episode is cut off, as by a full context.
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
        budget: actions of an episode.
        before: actions of the turns before.
        taken: actions of this turn.
        placed: boxes that this turn brought onto targets, less those it took away.
        first: whether this is the episode's first turn.
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
