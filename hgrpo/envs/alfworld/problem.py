"""Writes a house and its goal as a game file, with names, PDDL problem and walkthrough."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from hgrpo.envs.alfworld.goals import KINDS, Goal
from hgrpo.envs.alfworld.house import House
from hgrpo.envs.alfworld.vocabulary import ABILITIES, OBJECTS, PUT, RECEPTACLES, TOOLS

# Pairs: our text, and the text in the older language (alfworld before 0.4, published games).
_PUT_TEXT = (
    ("You arrive at {r.name}.", "You arrive at {lend.name}."),
    ('"move {o} to {r}"', '"put {o} in/on {r}"'),
    ("You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."),
)


@cache
def domain(language: str) -> str:
    """The PDDL domain; in the older language ("put") it has no `help` action."""
    text = _read("domain.pddl")
    return text if language == "move" else text.partition("\n (:action help")[0] + ")\n"


@cache
def grammar(language: str) -> str:
    """The text grammar, with `UNKNOWN GOAL` in place of the goal sentence."""
    text = _read("grammar.twl2")
    return text if language == "move" else in_older_words(text).partition("action help")[0]


def in_older_words(grammar: str) -> str:
    """The grammar in the older language, "put X in/on Y" in place of "move X to Y"."""
    for new, old in _PUT_TEXT:
        grammar = grammar.replace(new, old)
    return grammar


def _read(name: str) -> str:
    return files("hgrpo.envs.alfworld").joinpath(name).read_text(encoding="utf-8")


def game(house: House, goal: Goal, said: str, language: str) -> dict:
    """The content of a `game.tw-pddl` file; `said` is the goal sentence without its full stop."""
    return {
        "pddl_domain": domain(language),
        "grammar": grammar(language).replace("UNKNOWN GOAL", said),
        "pddl_problem": pddl(house, goal),
        "solvable": True,
        "walkthrough": walkthrough(house, goal, language),
    }


def _shown(types: Sequence[str]) -> list[str]:
    """The names that players see, numbered 1, 2, ... within each type, in order."""
    return [f"{name.lower()} {types[: i + 1].count(name)}" for i, name in enumerate(types)]


def _ids(types: Sequence[str]) -> list[str]:
    """PDDL ids. The serials count down, since players see the last id of a type as number 1."""
    ids = []
    for i, name in enumerate(types):
        serial = f"{types[i:].count(name):02d}"
        basin = name.endswith("Basin")  # SinkBasin_bar_01 would show as "sinkbasinbasin"
        stem = name.removesuffix("Basin") if basin else name
        ids.append(f"{stem}_bar_{serial}_bar_{name}" if basin else f"{stem}_bar_{serial}")
    return ids


def pddl(house: House, goal: Goal) -> str:
    """The PDDL problem."""
    receptacles = _ids(house.receptacles)
    object_types = [name for name, _ in house.objects]
    objects = _ids(object_types)
    spots = [f"loc_bar_{i + 1:02d}" for i in range(len(receptacles))]
    start = f"loc_bar_{len(receptacles) + 1:02d}"
    # The domain's actions name the types of tools and knives, so every problem declares them.
    known_receptacles = sorted({*house.receptacles, *TOOLS.values(), goal.receptacle} - {""})
    known_objects = sorted({*object_types, "ButterKnife", "Knife"})
    facts = [f"(atLocation agent1 {start})"]
    for name, spot, kind in zip(receptacles, spots, house.receptacles, strict=True):
        facts += [f"(receptacleAtLocation {name} {spot})", f"(receptacleType {name} {kind}Type)"]
        if RECEPTACLES[kind].openable:
            facts.append(f"(openable {name})")
    for name, (kind, place) in zip(objects, house.objects, strict=True):
        facts += [
            f"(objectType {name} {kind}Type)",
            f"(inReceptacle {name} {receptacles[place]})",
            f"(objectAtLocation {name} {spots[place]})",
            f"({'pickupable' if OBJECTS[kind].pickupable else 'toggleable'} {name})",
        ]
        facts += [f"({ABILITIES[change]} {name})" for change in sorted(OBJECTS[kind].changes)]
    for place in sorted(set(house.receptacles)):
        holds = RECEPTACLES[place].holds
        facts += [
            f"(canContain {place}Type {kind}Type)"
            for kind in sorted(set(object_types))
            if kind in holds and OBJECTS[kind].pickupable
        ]
    condition = KINDS[goal.task_type].condition.format(
        obj=goal.target, recep=goal.receptacle, toggle=goal.toggle
    )
    declared = [
        "agent1 - agent",
        f"{' '.join([*spots, start])} - location",
        f"{' '.join(receptacles)} - receptacle",
        f"{' '.join(objects)} - object",
        f"{' '.join(f'{kind}Type' for kind in known_receptacles)} - rtype",
        f"{' '.join(f'{kind}Type' for kind in known_objects)} - otype",
    ]
    return (
        "(define (problem household)\n (:domain alfred)\n (:objects\n"
        + "".join(f"  {line}\n" for line in declared)
        + " )\n (:init\n"
        + "".join(f"  {fact}\n" for fact in facts)
        + f" )\n (:goal (and {condition}))\n)\n"
    )


def walkthrough(house: House, goal: Goal, language: str) -> list[str]:
    """Commands that win the game for a player who knows where everything is."""
    spec = KINDS[goal.task_type]
    kinds, shown = house.receptacles, _shown(house.receptacles)
    object_types = [name for name, _ in house.objects]
    items = _shown(object_types)
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
        if goal.toggle:
            lamp = object_types.index(goal.toggle)
            go(house.objects[lamp][1])
            commands.append(f"use {items[lamp]}")
        else:
            home = kinds.index(goal.receptacle)
            reach_into(home)
            commands.append(PUT[language].format(items[item], shown[home]))
    return commands
