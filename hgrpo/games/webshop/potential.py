"""Progress of a session as a potential in [0, 1].

- On a page of results, the potential is 0.25 if the goal's product is listed, else 0.
- With a product open, the potential is 0.75 times the mean of the parts below.
- After the purchase, the potential is the mean of the parts below.

The parts are:

- whether this is the goal's product (0 or 1);
- the share of the goal's attributes that the product has;
- the share of the goal's options that are chosen; a goal without options lacks this part;
- whether the price is within the limit (0 or 1).

The potential is 1 only after buying the goal's product with all of the goal's options, while the
reward accepts other products with the same attributes. Leaving the goal's product lowers it.
"""

from hgrpo.games.webshop.reward import attribute_hits, option_hits
from hgrpo.games.webshop.session import Session

_LISTED = 0.25
_OPEN = 0.75


def potential(session: Session) -> float:
    """The potential of a session's current state."""
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
