"""Computes task progress as a potential in [0, 1], from the facts of either engine.

Each object that matches the goal earns points for completed steps. The potential is the largest
number of points of any object, divided by the number of points in a won game:

- Task "put", out of 2 points: 1 point for an object in hand, 2 points in a goal receptacle.
- Task "put" with a change (clean, hot or cool), out of 3 points: 1 point for an object in hand,
  plus 1 point if it is changed, and 3 points if it is changed and in a goal receptacle. An
  unchanged object in the receptacle earns nothing, because it must be taken again.
- Task "put two", out of 4 points: the sum over the best two objects for the same receptacle.
- Task "look at in light", out of 3 points: 1 point if an object is held, 1 if a lamp has been used,
  and 1 if an object is held next to that lamp.

The potential is 1 if and only if the game is won. For goals of any other form, the potential is 0
until the game is won.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from hgrpo.games.alfworld import pddl

Entity = Hashable
# Maps the name of a predicate to its facts. A fact is a single entity or a tuple of entities.
View = Callable[[str], set]
Candidates = Callable[[str], list[Entity]]
Value = Callable[[View], float]


def potential(
    goal: pddl.Formula, fluent: set[str], view: View, entity: Callable[[str], Entity]
) -> Callable[[View, bool], float]:
    """Return the potential of one game: a function of (facts, whether the game is won).

    Args:
        fluent: names of the predicates that actions change.
        view: the initial facts, which determine the static conditions.
        entity: maps an object's name to its entity in `view`.
    """
    shape = _shape(goal, fluent)

    def candidates(variable: str) -> list[Entity]:
        passing = [
            {fact[0] for fact in view(predicate) if fact[1] == entity(constant)}
            if constant
            else view(predicate)
            for predicate, constant in shape.static[variable]
        ]
        return sorted(set.intersection(*passing))

    value = shape and (_placing(shape, candidates) or _lighting(shape, candidates))
    return lambda view, won: value(view) if value else float(won)


@dataclass
class _Shape:
    """The conditions of a goal that contains only `and`, `exists`, atoms and inequalities.

    Attributes:
        relations: atoms with zero or several variables, as (predicate, argument, ...).
        unequal: pairs of variables that must differ. Variables are renamed to be unique.
        static: maps a variable to (predicate, constant or "") for each condition that is fixed.
        states: maps a variable to the predicate of each condition that actions can change.
    """

    relations: set[tuple[str, ...]] = field(default_factory=set)
    unequal: set[frozenset[str]] = field(default_factory=set)
    static: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    states: dict[str, set[str]] = field(default_factory=dict)


def _shape(goal: pddl.Formula, fluent: set[str]) -> _Shape | None:
    """Split a goal into its conditions, or return None if the goal does not fit `_Shape`."""
    shape = _Shape()
    todo: list[tuple[pddl.Formula, dict[str, str]]] = [(goal, {})]
    count = 0
    while todo:
        part, names = todo.pop()
        match part:
            case pddl.And(parts):
                todo += [(inner, names) for inner in parts]
            case pddl.Exists(variables, inner):
                fresh = {name: f"{name}#{count + i}" for i, (name, _) in enumerate(variables)}
                count += len(variables)
                todo.append((inner, names | fresh))
            case pddl.Not(pddl.Atom("=", args)):
                shape.unequal.add(frozenset(names.get(arg, arg) for arg in args))
            case pddl.Atom(predicate, args):
                args = [names.get(arg, arg) for arg in args]
                variables = [arg for arg in args if arg.startswith("?")]
                if len(variables) != 1 or predicate == "=":
                    shape.relations.add((predicate, *args))
                elif len(args) == 1 and predicate in fluent:
                    shape.states.setdefault(args[0], set()).add(predicate)
                elif args[0] == variables[0] and predicate not in fluent:
                    test = (predicate, args[1] if len(args) > 1 else "")
                    shape.static.setdefault(args[0], set()).add(test)
                else:
                    return None
            case _:
                return None
    return shape


def _placing(shape: _Shape, candidates: Candidates) -> Value | None:
    if {name for name, *_ in shape.relations} != {"inreceptacle"}:
        return None
    objects = sorted({args[1] for args in shape.relations})
    places = {args[-1] for args in shape.relations}
    pairs = {frozenset((a, b)) for a in objects for b in objects if a != b}
    kinds = [(shape.static.get(name), shape.states.get(name)) for name in objects]
    if len(places) != 1 or shape.unequal != pairs or any(kind != kinds[0] for kind in kinds):
        return None
    (place,) = places
    if place in shape.states or place not in shape.static or objects[0] not in shape.static:
        return None
    states = sorted(shape.states.get(objects[0], ()))
    things, receptacles = candidates(objects[0]), candidates(place)
    copies, full = len(objects), 2 + len(states)

    def value(view: View) -> float:
        held = {fact[1] for fact in view("holds")}
        inside = view("inreceptacle")
        changed = [view(state) for state in states]
        points = []
        for thing in things:
            done = sum(thing in facts for facts in changed)
            points.append((thing, done + (thing in held), done == len(states)))
        best = 0
        for receptacle in receptacles:
            scores = sorted(
                full if ready and (thing, receptacle) in inside else loose
                for thing, loose, ready in points
            )
            best = max(best, sum(scores[-copies:]))
        return best / (copies * full)

    return value


def _lighting(shape: _Shape, candidates: Candidates) -> Value | None:
    relations = {name: args for name, *args in shape.relations}
    expected = {"receptacleatlocation", "atlocation", "inreceptacle", "holds"}
    if set(relations) != expected or len(shape.relations) != len(expected) or shape.unequal:
        return None
    (lamp, place), thing = relations["inreceptacle"], relations["holds"][1]
    if relations["receptacleatlocation"] != [place, relations["atlocation"][1]] or thing == lamp:
        return None
    if shape.states != {lamp: {"istoggled"}} or set(shape.static) != {lamp, thing}:
        return None
    lamps, things = candidates(lamp), candidates(thing)

    def value(view: View) -> float:
        held = any(fact[1] in things for fact in view("holds"))
        here = {fact[1] for fact in view("atlocation")}
        near = {place for place, spot in view("receptacleatlocation") if spot in here}
        toggled, inside = view("istoggled"), view("inreceptacle")
        best = 0
        for lamp in lamps:
            beside = held and any((lamp, place) in inside for place in near)
            best = max(best, (lamp in toggled) + beside)
        return (held + best) / 3

    return value
