"""Writes a house and its mission as a game file: names, PDDL problem, walkthrough."""

from collections import Counter
from functools import cache
from importlib.resources import files

from hgrpo.envs.alfworld.goals import KINDS
from hgrpo.envs.alfworld.house import House, Mission
from hgrpo.envs.alfworld.vocabulary import OBJECTS, RECEPTACLES, TOOLS

# The language before alfworld 0.4, and of the published json_2.1.1 games.
_PUT_TEXT = (
    ("You arrive at {r.name}.", "You arrive at {lend.name}."),
    ('"move {o} to {r}"', '"put {o} in/on {r}"'),
    (
        "You move the {o.name} to the {r.name}.",
        "You put the {o.name} in/on the {r.name}.",
    ),
)
_CHANGE_ABILITY = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}
# The domain's actions name these types, so even a house without them must declare them.
_DOMAIN_RECEPTACLE_TYPES = tuple(TOOLS.values())
_DOMAIN_OBJECT_TYPES = ("ButterKnife", "Knife")


@cache
def domain(language: str) -> str:
    """The PDDL domain; the older language ("put") has no `help` action."""
    text = _read("domain.pddl")
    return text if language == "move" else text.partition("\n (:action help")[0] + ")\n"


@cache
def grammar(language: str) -> str:
    """The text grammar, with `UNKNOWN GOAL` in place of the goal sentence."""
    text = _read("grammar.twl2")
    if language == "move":
        return text
    for new, old in _PUT_TEXT:
        text = text.replace(new, old)
    return text.partition("action help")[0]


def _read(name: str) -> str:
    return files("hgrpo.envs.alfworld").joinpath(name).read_text()


def game(house: House, mission: Mission, goal: str, language: str) -> dict:
    """The content of a `game.tw-pddl` file; `goal` is the goal sentence without its full stop."""
    return {
        "pddl_domain": domain(language),
        "grammar": grammar(language).replace("UNKNOWN GOAL", goal),
        "pddl_problem": pddl(house, mission),
        "solvable": True,
        "walkthrough": walkthrough(house, mission, language),
    }


def numbers(types: list[str] | tuple[str, ...]) -> list[int]:
    """The numbers in the shown names: 1, 2, ... within each type, in order."""
    seen: Counter[str] = Counter()
    shown = []
    for name in types:
        seen[name] += 1
        shown.append(seen[name])
    return shown


def _ids(types: list[str] | tuple[str, ...]) -> list[str]:
    """PDDL names. ALFWorld numbers sorted ids downwards, so the last id gets number 1."""
    total = Counter(types)
    ids = []
    for name, number in zip(types, numbers(types), strict=True):
        serial = f"{total[name] - number + 1:02d}"
        basin = name.endswith("Basin")  # shown as "sinkbasin" only if spelt Sink..SinkBasin
        stem = name.removesuffix("Basin") if basin else name
        ids.append(f"{stem}_bar_{serial}_bar_{name}" if basin else f"{stem}_bar_{serial}")
    return ids


def pddl(house: House, mission: Mission) -> str:
    """The PDDL problem of a house and a mission."""
    receptacles = _ids(house.receptacles)
    object_types = [name for name, _ in house.objects]
    objects = _ids(object_types)
    spots = [f"loc_bar_{i + 1:02d}" for i in range(len(receptacles))]
    start = f"loc_bar_{len(receptacles) + 1:02d}"
    known_receptacles = sorted(
        {
            *house.receptacles,
            *_DOMAIN_RECEPTACLE_TYPES,
            *filter(None, [mission.receptacle]),
        }
    )
    known_objects = sorted({*object_types, *_DOMAIN_OBJECT_TYPES})
    facts = [f"(atLocation agent1 {start})"]
    for name, spot, kind in zip(receptacles, spots, house.receptacles, strict=True):
        facts += [
            f"(receptacleAtLocation {name} {spot})",
            f"(receptacleType {name} {kind}Type)",
        ]
        if RECEPTACLES[kind].openable:
            facts.append(f"(openable {name})")
    for name, (kind, place) in zip(objects, house.objects, strict=True):
        facts += [
            f"(objectType {name} {kind}Type)",
            f"(inReceptacle {name} {receptacles[place]})",
            f"(objectAtLocation {name} {spots[place]})",
            f"({'pickupable' if OBJECTS[kind].pickupable else 'toggleable'} {name})",
        ]
        facts += [f"({_CHANGE_ABILITY[change]} {name})" for change in sorted(OBJECTS[kind].changes)]
    for place in sorted(set(house.receptacles)):
        holds = RECEPTACLES[place].holds
        facts += [
            f"(canContain {place}Type {kind}Type)"
            for kind in sorted(set(object_types))
            if kind in holds and OBJECTS[kind].pickupable
        ]
    goal = KINDS[mission.task_type].condition.format(
        obj=mission.target, recep=mission.receptacle, toggle=mission.toggle
    )
    declared = [
        "agent1 - agent",
        f"{' '.join([*spots, start])} - location",
        f"{' '.join(receptacles)} - receptacle",
        f"{' '.join(objects)} - object",
        f"{' '.join(f'{kind}Type' for kind in known_receptacles)} - rtype",
        f"{' '.join(f'{kind}Type' for kind in known_objects)} - otype",
    ]
    return "\n".join(
        [
            "(define (problem household)",
            " (:domain alfred)",
            " (:objects",
            *(f"  {line}" for line in declared),
            " )",
            " (:init",
            *(f"  {fact}" for fact in facts),
            " )",
            f" (:goal (and {goal}))",
            ")",
            "",
        ]
    )


def walkthrough(house: House, mission: Mission, language: str) -> list[str]:
    """Commands that win the game if one knows where everything is."""
    spec = KINDS[mission.task_type]
    kinds = house.receptacles
    shown = [f"{k.lower()} {n}" for k, n in zip(kinds, numbers(kinds), strict=True)]
    object_types = [name for name, _ in house.objects]
    items = [f"{k.lower()} {n}" for k, n in zip(object_types, numbers(object_types), strict=True)]
    commands: list[str] = []
    here, opened = -1, set()

    def go(place: int) -> None:
        nonlocal here
        if place != here:
            commands.append(f"go to {shown[place]}")
            here = place

    def reach_into(place: int) -> None:
        go(place)
        if RECEPTACLES[kinds[place]].openable and place not in opened:
            commands.append(f"open {shown[place]}")
            opened.add(place)

    for item in range(spec.copies):  # targets stand first among the objects
        place = house.objects[item][1]
        reach_into(place)
        commands.append(f"take {items[item]} from {shown[place]}")
        if spec.change:
            tool = kinds.index(TOOLS[spec.change])
            go(tool)
            commands.append(f"{spec.change} {items[item]} with {shown[tool]}")
        if mission.toggle:
            lamp = object_types.index(mission.toggle)
            go(house.objects[lamp][1])
            commands.append(f"use {items[lamp]}")
        else:
            goal = kinds.index(mission.receptacle)
            reach_into(goal)
            verb, link = ("move", "to") if language == "move" else ("put", "in/on")
            commands.append(f"{verb} {items[item]} {link} {shown[goal]}")
    return commands
