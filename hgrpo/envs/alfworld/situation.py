"""Fingerprints of what an agent can know of its situation, for credit that compares states.

Two moments of one game have the same `state` when the agent stands at the same place and has
changed the same things in the same way, and the same `commands` when the same commands are open to
it. Receptacles it left open elsewhere and things it only looked at do not count, nor does whether a
lamp is on now: goals ask whether it was used.
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
    """The place and the changes since the start, sorted.

    Args:
        view, start: facts by predicate name, now and after the reset.
    """
    facts = [(PLACE, fact) for fact in view(PLACE)]
    for name in CHANGES:
        facts += [(name, fact) for fact in view(name) - start(name)]
    return sorted(facts)
