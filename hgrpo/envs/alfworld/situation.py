"""What counts as the same state, for credit that compares states.

Two moments of a game have the same state if the agent is at the same place and has changed the same
things in the same way. Receptacles left open elsewhere and things that were only looked at do not
count. Nor does it count whether a lamp is on, since goals ask whether it has been used.
"""

from hgrpo.envs.alfworld.potential import View

PLACE = "atlocation"
CHANGES = (
    "holds",
    "inreceptacle",
    "inreceptacleobject",
    "isclean",
    "iscool",
    "ishot",
    "issliced",
    "istoggled",
)


def changed(view: View, start: View) -> list[tuple]:
    """The agent's place, and the facts that hold in `view` but not in `start`, sorted."""
    facts = [(PLACE, fact) for fact in view(PLACE)]
    for name in CHANGES:
        facts += [(name, fact) for fact in view(name) - start(name)]
    return sorted(facts)
