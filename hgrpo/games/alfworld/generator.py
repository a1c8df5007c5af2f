"""Generates games in the published layout: their names, PDDL problems and walkthroughs.

Splits are disjoint, and task types are equally frequent in each split.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.games import streams
from hgrpo.games.alfworld.gamefile import GAME_FILE, TASK_FILE
from hgrpo.games.alfworld.goals import KINDS, Goal, sentence
from hgrpo.games.alfworld.house import House, Household
from hgrpo.games.alfworld.settings import GenerateSettings
from hgrpo.games.alfworld.vocabulary import ABILITIES, OBJECTS, PUT, RECEPTACLES, TOOLS
from hgrpo.games.panels import PANELS

# Each pair contains a text in our grammar and its equivalent in the older language, which is used
# by published games and by alfworld before version 0.4.
_PUT_TEXT = (
    ("You arrive at {r.name}.", "You arrive at {lend.name}."),
    ('"move {o} to {r}"', '"put {o} in/on {r}"'),
    ("You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."),
)
_ATTEMPTS = 1000


@cache
def domain(language: str) -> str:
    """Return the PDDL domain. In the older language ("put"), the domain has no action `help`."""
    text = _read("domain.pddl")
    return text if language == "move" else text.partition("\n (:action help")[0] + ")\n"


@cache
def grammar(language: str) -> str:
    """Return the text grammar, with `UNKNOWN GOAL` as a placeholder for the goal sentence."""
    text = _read("grammar.twl2")
    return text if language == "move" else in_older_words(text).partition("action help")[0]


def in_older_words(grammar: str) -> str:
    """Convert a grammar to the older language: "put X in/on Y" instead of "move X to Y"."""
    for new, old in _PUT_TEXT:
        grammar = grammar.replace(new, old)
    return grammar


def _read(name: str) -> str:
    return files("hgrpo.games.alfworld").joinpath(name).read_text(encoding="utf-8")


def game(house: House, goal: Goal, text: str, language: str) -> dict:
    """Content of a `game.tw-pddl` file; `text` is the goal sentence without its full stop."""
    return {
        "pddl_domain": domain(language),
        "grammar": grammar(language).replace("UNKNOWN GOAL", text),
        "pddl_problem": pddl(house, goal),
        "solvable": True,
        "walkthrough": walkthrough(house, goal, language),
    }


def _display_names(types: Sequence[str]) -> list[str]:
    """Display names such as "mug 2". Entities of each type are numbered from 1 in list order."""
    return [f"{name.lower()} {types[: i + 1].count(name)}" for i, name in enumerate(types)]


def _ids(types: Sequence[str]) -> list[str]:
    """PDDL ids, numbered in descending order: the last id of a type is displayed as number 1."""
    ids = []
    for i, name in enumerate(types):
        serial = f"{types[i:].count(name):02d}"
        basin = name.endswith("Basin")  # SinkBasin_bar_01 would be displayed as "sinkbasinbasin"
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
    # The types of tools and knives are always declared, because actions of the domain use them.
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
    """Commands that win the game, for a player who knows the places of all objects."""
    spec = KINDS[goal.task_type]
    kinds, names = house.receptacles, _display_names(house.receptacles)
    object_types = [name for name, _ in house.objects]
    items = _display_names(object_types)
    commands: list[str] = []
    here, opened = -1, set()

    def go(place: int) -> None:
        nonlocal here
        if place != here:
            commands.append(f"go to {names[place]}")
            here = place

    def reach_into(place: int) -> None:
        go(place)
        if RECEPTACLES[kinds[place]].openable and place not in opened:
            commands.append(f"open {names[place]}")
            opened.add(place)

    for item in range(spec.copies):  # the first objects of a house are the targets
        place = house.objects[item][1]
        reach_into(place)
        commands.append(f"take {items[item]} from {names[place]}")
        if spec.change:
            tool = kinds.index(TOOLS[spec.change])
            go(tool)
            commands.append(f"{spec.change} {items[item]} with {names[tool]}")
        if goal.toggle:
            lamp = object_types.index(goal.toggle)
            go(house.objects[lamp][1])
            commands.append(f"use {items[lamp]}")
        else:
            home = kinds.index(goal.receptacle)
            reach_into(home)
            commands.append(PUT[language].format(items[item], names[home]))
    return commands


@dataclass(frozen=True)
class GameFiles:
    """The contents of a game's two files; `folder` is `<task>/<trial>`."""

    folder: str
    game: dict
    trajectory: dict


def generate(
    config: GenerateSettings, sizes: dict[str, int], language: str, seed: int
) -> Iterator[tuple[str, GameFiles]]:
    """Yield (split, game), split by split. `sizes` may contain `analysis` as a fourth split.

    Each combination of house and goal occurs at most once. The core of a game is the room with its
    receptacles, the goal, and the places of the objects that the goal requires. No core occurs in
    two splits, because an agent could memorise the solution of a game and use it in a game that
    differs only in other objects.

    Game i of a split has task type i modulo the number of types, so that every prefix of a panel is
    stratified. A game depends only on (seed, split, i), unless its first draw duplicates an earlier
    game.

    Raises:
        UserError: the settings contain an unknown type or an impossible task type, or allow too few
            distinct games.
    """
    household = Household(config)
    # `drawn` contains the games drawn so far, and `cores` maps each core to its split.
    drawn, cores = set(), {}
    for place, split in enumerate(PANELS):
        for index in range(sizes.get(split, 0)):
            kind = config.task_types[index % len(config.task_types)]
            house, goal, text = _fresh(household, kind, drawn, cores, (seed, split, index))
            number = place * 1_000_000 + index
            task = f"{kind}-{goal.target}-None-{goal.receptacle or goal.toggle}-{number}"
            trial = f"trial_T{seed:08d}_{place:06d}_{index:06d}"
            trajectory = {
                "task_id": trial,
                "task_type": kind,
                "pddl_params": {
                    "mrecep_target": "",
                    "object_sliced": False,
                    "object_target": goal.target,
                    "parent_target": goal.receptacle,
                    "toggle_target": goal.toggle,
                },
                "scene": {"floor_plan": f"FloorPlan{number}", "room": house.room},
                "turk_annotations": {"anns": [{"task_desc": text}]},
            }
            content = game(house, goal, text, language)
            yield split, GameFiles(f"{task}/{trial}", content, trajectory)


def _fresh(
    household: Household, kind: str, drawn: set, cores: dict[tuple, str], name: tuple[int, str, int]
) -> tuple[House, Goal, str]:
    """Draw a new house and goal, and a goal sentence. `name` is the game's (seed, split, index)."""
    _, split, index = name
    for attempt in range(_ATTEMPTS):
        rng = streams.generator("alfworld-game", *name, attempt)
        house, goal = household.draw(kind, rng)
        places = tuple(place for place in house.objects if place[0] in (goal.target, goal.toggle))
        core = (house.room, house.receptacles, goal, places)
        # Games that differ only in the wording of the goal sentence count as equal.
        if (house, goal) not in drawn and cores.setdefault(core, split) == split:
            drawn.add((house, goal))
            templates = KINDS[kind].sentences
            return house, goal, sentence(templates[int(rng.integers(len(templates)))], goal)
    raise UserError(
        f"games.generate: {split}: {_ATTEMPTS} random {kind} games were duplicates (after {index} "
        "games). The settings allow too few distinct games; widen them, or reduce the panel sizes"
    )


def write(root: Path, files: GameFiles) -> None:
    """Write `game.tw-pddl` and `traj_data.json` into the new folder `root/<task>/<trial>`."""
    place = root / files.folder
    place.mkdir(parents=True)
    (place / GAME_FILE).write_text(json.dumps(files.game), encoding="utf-8")
    (place / TASK_FILE).write_text(json.dumps(files.trajectory), encoding="utf-8")
