"""A small household in the published format, for tests of the native engine.

A drawer (closed) and a shelf share a spot; a microwave, a fridge and a sink stand alone. Two mugs
lie on the shelf, a pen in the drawer, and a desk lamp stands on the desk.
"""

from hgrpo.games.alfworld.generator import domain, grammar

RECEPTACLES = {
    "Desk_bar_1": ("DeskType", "spot1"),
    "Drawer_bar_1": ("DrawerType", "spot2"),
    "Fridge_bar_1": ("FridgeType", "spot3"),
    "Microwave_bar_1": ("MicrowaveType", "spot4"),
    "Shelf_bar_1": ("ShelfType", "spot2"),
    "Sink_bar_1_bar_SinkBasin": ("SinkBasinType", "spot5"),
}
OPENABLE = ("Drawer_bar_1", "Fridge_bar_1", "Microwave_bar_1")
OBJECTS = {
    "Mug_bar_1": ("MugType", "Shelf_bar_1"),
    "Mug_bar_2": ("MugType", "Shelf_bar_1"),
    "Pen_bar_1": ("PenType", "Drawer_bar_1"),
    "DeskLamp_bar_1": ("DeskLampType", "Desk_bar_1"),
}
GOALS = {
    "place": "(exists (?r - receptacle ?o - object) (and (inReceptacle ?o ?r) "
    "(objectType ?o MugType) (receptacleType ?r DeskType)))",
    "heat": "(exists (?r - receptacle) (exists (?o - object) (and (heatable ?o) "
    "(objectType ?o MugType) (receptacleType ?r DeskType) (isHot ?o) (inReceptacle ?o ?r))))",
    "two": "(exists (?r - receptacle ?o1 - object) (and (inReceptacle ?o1 ?r) "
    "(objectType ?o1 MugType) (receptacleType ?r DeskType) (exists (?o2 - object) "
    "(and (not (= ?o1 ?o2)) (objectType ?o2 MugType) (receptacleType ?r DeskType) "
    "(inReceptacle ?o2 ?r)))))",
    "light": "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) "
    "(and (objectType ?ot DeskLampType) (toggleable ?ot) (isToggled ?ot) "
    "(receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r))) "
    "(exists (?o - object ?a - agent) (and (objectType ?o PenType) (holds ?a ?o))))",
    "other": "(exists (?r - receptacle) (and (receptacleType ?r DrawerType) (opened ?r)))",
}


def household(goal: str = "place", language: str = "move", extra: str = "") -> dict:
    """The game file's mapping; `extra` is added to the initial facts."""
    kinds = sorted({kind for kind, _ in RECEPTACLES.values()})
    types = sorted({kind for kind, _ in OBJECTS.values()} | {"KnifeType", "ButterKnifeType"})
    facts = ["(atLocation agent1 spot0)"]
    for name, (kind, spot) in RECEPTACLES.items():
        facts += [f"(receptacleAtLocation {name} {spot})", f"(receptacleType {name} {kind})"]
    facts += [f"(openable {name})" for name in OPENABLE]
    for name, (kind, place) in OBJECTS.items():
        facts += [f"(objectType {name} {kind})", f"(inReceptacle {name} {place})"]
        facts.append(f"(objectAtLocation {name} {RECEPTACLES[place][1]})")
        facts.append(f"(toggleable {name})" if "Lamp" in name else f"(pickupable {name})")
    facts += [f"(heatable {n}) (coolable {n}) (cleanable {n})" for n in OBJECTS if "Mug" in n]
    facts += [f"(canContain {kind} {thing})" for kind in kinds for thing in ("MugType", "PenType")]
    spots = " ".join(f"spot{i}" for i in range(6))
    problem = f"""(define (problem test) (:domain alfred)
      (:objects agent1 - agent {spots} - location {" ".join(RECEPTACLES)} - receptacle
                {" ".join(OBJECTS)} - object {" ".join(kinds)} - rtype {" ".join(types)} - otype)
      (:init {" ".join(facts)} {extra})
      (:goal {GOALS.get(goal, goal)}))"""
    return {
        "pddl_domain": domain(language),
        "grammar": grammar(language).replace("UNKNOWN GOAL", "put a mug on desk"),
        "pddl_problem": problem,
        "solvable": True,
    }
