"""The six task types: goal sentences, goal conditions, and a reader of goal sentences."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class TaskKind:
    """What a task type asks for.

    Attributes:
        sentences: ALFWorld's goal templates, over {obj}, {recep} and {toggle} in lower case.
        condition: the PDDL goal, over {obj}, {recep} and {toggle} as type names.
        change: the change of state that is asked for, a key of `vocabulary.TOOLS`, or "".
        copies: how many objects of the target's type the task needs.
    """

    sentences: tuple[str, ...]
    condition: str
    change: str = ""
    copies: int = 1


def _placed(adjective: str, verb: str, state: str, change: str) -> TaskKind:
    able = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}[change]
    return TaskKind(
        (
            f"put a {adjective} {{obj}} in {{recep}}",
            f"{verb} some {{obj}} and put it in {{recep}}",
        ),
        "(exists (?r - receptacle) (exists (?o - object) (and (inReceptacle ?o ?r) "
        f"(objectType ?o {{obj}}Type) (receptacleType ?r {{recep}}Type) ({able} ?o) "
        f"({state} ?o))))",
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
    "pick_clean_then_place_in_recep": _placed("clean", "clean", "isClean", "clean"),
    "pick_heat_then_place_in_recep": _placed("hot", "heat", "isHot", "heat"),
    "pick_cool_then_place_in_recep": _placed("cool", "cool", "isCool", "cool"),
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
    """What a goal sentence asks for, in the names that players see ("mug", "countertop")."""

    task_type: str
    target: str
    receptacle: str
    toggle: str


def sentence(template: str, target: str, receptacle: str, toggle: str) -> str:
    """Fill a goal template. Type names come as in PDDL ("Mug") and go in as lower case."""
    return template.format(obj=target.lower(), recep=receptacle.lower(), toggle=toggle.lower())


# {obj} matches no space, so "put a clean mug in shelf" does not fit "put a {obj} in {recep}": the
# order of the patterns does not matter.
_PATTERNS = [
    (kind, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[a-z]+)", template)))
    for kind, spec in KINDS.items()
    for template in spec.sentences
]


def read(goal: str) -> Goal | None:
    """The goal behind a template sentence (with or without its full stop), or None.

    It does not read goals in people's words, such as the published annotations.
    """
    text = goal.strip().rstrip(".").removeprefix("Your task is to: ").strip()
    for kind, pattern in _PATTERNS:
        if match := pattern.fullmatch(text):
            found = match.groupdict()
            return Goal(kind, found["obj"], found.get("recep", ""), found.get("toggle", ""))
    return None
