"""Defines the six task types with their goal sentences and conditions, and parses sentences."""

import re
from dataclasses import dataclass

from hgrpo.games.alfworld.vocabulary import ABILITIES


@dataclass(frozen=True)
class TaskKind:
    """The requirements of a task type. Templates may contain {obj}, {recep} and {toggle}."""

    sentences: tuple[str, ...]  # ALFWorld's templates of goal sentences; names are in lower case
    condition: str  # template of the PDDL goal; names are PDDL types
    change: str = ""  # required change of the object: a key of `vocabulary.TOOLS`, or ""
    copies: int = 1  # required number of objects of the target's type


def _placed(change: str, adjective: str) -> TaskKind:
    return TaskKind(
        (
            f"put a {adjective} {{obj}} in {{recep}}",
            f"{change} some {{obj}} and put it in {{recep}}",
        ),
        "(exists (?r - receptacle) (exists (?o - object) (and (inReceptacle ?o ?r) "
        "(objectType ?o {obj}Type) (receptacleType ?r {recep}Type) "
        f"({ABILITIES[change]} ?o) (is{adjective.title()} ?o))))",
        change,
    )


KINDS = {
    "pick_and_place_simple": TaskKind(
        ("put a {obj} in {recep}", "put some {obj} on {recep}"),
        "(exists (?r - receptacle) (exists (?o - object) (and (inReceptacle ?o ?r) "
        "(objectType ?o {obj}Type) (receptacleType ?r {recep}Type))))",
    ),
    "look_at_obj_in_light": TaskKind(
        ("look at {obj} under the {toggle}", "examine the {obj} with the {toggle}"),
        "(exists (?ot - object ?r - receptacle ?a - agent ?l - location) "
        "(and (objectType ?ot {toggle}Type) (toggleable ?ot) (isToggled ?ot) "
        "(receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r))) "
        "(exists (?o - object ?a - agent) (and (objectType ?o {obj}Type) (holds ?a ?o)))",
    ),
    "pick_clean_then_place_in_recep": _placed("clean", "clean"),
    "pick_heat_then_place_in_recep": _placed("heat", "hot"),
    "pick_cool_then_place_in_recep": _placed("cool", "cool"),
    "pick_two_obj_and_place": TaskKind(
        ("put two {obj} in {recep}", "find two {obj} and put them in {recep}"),
        "(exists (?r - receptacle) (exists (?o1 - object) (and (inReceptacle ?o1 ?r) "
        "(objectType ?o1 {obj}Type) (receptacleType ?r {recep}Type) "
        "(exists (?o2 - object) (and (not (= ?o1 ?o2)) (inReceptacle ?o2 ?r) "
        "(objectType ?o2 {obj}Type) (receptacleType ?r {recep}Type))))))",
        copies=2,
    ),
}


@dataclass(frozen=True)
class Goal:
    """The goal of a game. `receptacle` or `toggle` is "" if the task type does not use it.

    Names are either PDDL types ("CounterTop") or display names ("countertop").
    """

    task_type: str
    target: str
    receptacle: str
    toggle: str


def sentence(template: str, goal: Goal) -> str:
    """Fill a goal template with display names."""
    names = {"obj": goal.target, "recep": goal.receptacle, "toggle": goal.toggle}
    return template.format_map({key: name.lower() for key, name in names.items()})


# A placeholder cannot match a space. Otherwise, "put a clean mug in shelf" would match "put a {obj}
# in {recep}". A sentence matches at most one pattern, so the order of patterns is irrelevant.
_PATTERNS = [
    (kind, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[a-z]+)", template)))
    for kind, spec in KINDS.items()
    for template in spec.sentences
]


def read(goal: str) -> Goal | None:
    """Parse a template sentence, with or without full stop; None for other sentences."""
    text = goal.strip().rstrip(".").removeprefix("Your task is to: ").strip()
    for kind, pattern in _PATTERNS:
        if match := pattern.fullmatch(text):
            groups = match.groupdict()
            return Goal(kind, groups["obj"], groups.get("recep", ""), groups.get("toggle", ""))
    return None
