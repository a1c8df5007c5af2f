"""Computes the progress of a session as a potential in [0, 1].

- On a page of results, the potential is 0.25 if the goal's product is listed, else 0.
- With a product open, the potential is 0.75 times the mean of the parts below.
- After the purchase, the potential is the mean of the parts below.

The parts are:

- whether the product is the goal's product (0 or 1);
- the share of the goal's attributes that the product has;
- the share of the goal's options that are chosen, unless the goal has no options;
- whether the price is within the limit (0 or 1).

The potential is 1 only after the goal's product has been bought with all of the goal's options. The
reward, in contrast, can also be 1 for other products with the same attributes. The potential
decreases when the agent leaves the page of the goal's product.
"""

from hgrpo.games.webshop.reward import attribute_hits, option_hits
from hgrpo.games.webshop.session import Session

_LISTED = 0.25
_OPEN = 0.75


def potential(session: Session) -> float:
    """Return the potential of the session's current state."""
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
