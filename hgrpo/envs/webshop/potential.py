"""Progress of a session as a potential in [0, 1].

- On a page of results it is 0.25 if the product that was asked for is listed there, else 0.
- With a product open it is 0.75 times the mean of its parts: it is the product asked for (0 or 1),
  the share of the goal's attributes it has, the share of the goal's options that are chosen (no
  part if the goal has none), and it is within the price limit (0 or 1).
- Bought, it is the mean of the same parts.

So it is 1 only once the product asked for is bought with all its options, it falls when a product
is left, and it says more than the reward does: the reward forgives another product with the same
attributes.
"""

from hgrpo.envs.webshop.reward import attribute_hits, option_hits
from hgrpo.envs.webshop.session import Session

_LISTED = 0.25
_OPEN = 0.75


def potential(session: Session) -> float:
    """The potential of where a session stands."""
    item, goal = session.item, session.goal
    if item is None:
        return _LISTED if goal.row in session.listed else 0.0
    parts = [
        float(item.row == goal.row),
        attribute_hits(item.product, goal.attributes) / len(goal.attributes),
        float(item.price <= goal.price_limit),
    ]
    if goal.options:
        parts.append(option_hits(tuple(session.chosen.values()), goal.options) / len(goal.options))
    mean = sum(parts) / len(parts)
    return mean if session.bought is not None else _OPEN * mean
