"""Task progress as a potential in [0, 1], from the facts of either engine.

Each candidate object earns points for the steps that are done. The potential is the largest sum of
points, divided by the points of a won game:

- put: 1 if held, 2 if in a goal receptacle; out of 2. If the goal asks for a clean, hot or cool
  object: 1 if held, 1 more if changed, 3 if changed and in a goal receptacle; out of 3. An
  unchanged object in place earns nothing, since it must be taken again.
- put two: the points of the best two objects for one receptacle; out of 4.
- look at in light: 1 if the object is held, 1 if the lamp is on, 1 if the object is held next to
  the lamp; out of 3.

The potential is 1 exactly when the game is won. A goal of another shape counts 1 when won and
0 before.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

from hgrpo.envs.alfworld import pddl

Entity = Hashable
View = Callable[[str], "set"]
"""Facts by predicate name: bare entities for one argument, tuples for more."""

_LIGHT = {"istoggled", "receptacleatlocation", "atlocation", "inreceptacle", "holds"}


@dataclass
class _Conditions:
    """The goal's conditions on one variable: static tests, and states that actions bring about."""

    static: set[tuple[str, str]] = field(default_factory=set)
    states: set[str] = field(default_factory=set)


class Potential:
    """The potential of one game.

    Args:
        goal: the problem's goal.
        fluent: names of the predicates that actions change.
        view: the facts at the start, from which static conditions are read.
        entity: name -> its entity in `view`.

    Attributes:
        reads: names of the predicates whose facts the value depends on.
    """

    def __init__(
        self, goal: pddl.Formula, fluent: set[str], view: View, entity: Callable[[str], Entity]
    ) -> None:
        self._value: Callable[[View], float] | None = None
        self.reads = pddl.predicates(goal)
        atoms, unequal = _flatten(goal)
        if atoms is None:
            return
        conditions: dict[str, _Conditions] = {}
        relations: set[tuple[str, ...]] = set()
        for predicate, *args in atoms:
            variables = [arg for arg in args if arg.startswith("?")]
            if len(variables) == 1 and predicate != "=":
                entry = conditions.setdefault(variables[0], _Conditions())
                if len(args) == 1 and predicate in fluent:
                    entry.states.add(predicate)
                elif args[0].startswith("?") and predicate not in fluent:
                    entry.static.add((predicate, args[1] if len(args) > 1 else ""))
                else:
                    return
            else:
                relations.add((predicate, *args))

        def candidates(variable: str) -> list[Entity]:
            tests = conditions.get(variable, _Conditions()).static
            return _candidates(tests, view, entity)

        self._value = _placing(relations, unequal, conditions, candidates) or _lighting(
            relations, unequal, conditions, candidates
        )
        if self._value is not None:
            self.reads = (self.reads & fluent) | {"holds"}

    def value(self, view: View, won: bool) -> float:
        """The potential of the facts in `view`."""
        return float(won) if self._value is None else self._value(view)


def _flatten(
    goal: pddl.Formula,
) -> tuple[list[tuple[str, ...]] | None, set[frozenset[str]]]:
    """Atoms of a conjunction under `exists`, with unique variables, and pairs that must differ."""
    atoms: list[tuple[str, ...]] = []
    unequal: set[frozenset[str]] = set()
    todo: list[tuple[pddl.Formula, dict[str, str]]] = [(goal, {})]
    count = 0
    while todo:
        part, names = todo.pop()
        if isinstance(part, pddl.And):
            todo += [(inner, names) for inner in part.parts]
        elif isinstance(part, pddl.Exists):
            fresh = {}
            for name, _ in part.variables:
                fresh[name] = f"{name}#{count}"
                count += 1
            todo.append((part.part, names | fresh))
        elif isinstance(part, pddl.Atom):
            atoms.append((part.predicate, *(names.get(arg, arg) for arg in part.args)))
        elif isinstance(part, pddl.Not) and getattr(part.part, "predicate", None) == "=":
            unequal.add(frozenset(names.get(arg, arg) for arg in part.part.args))
        else:
            return None, set()
    return atoms, unequal


def _candidates(
    tests: Iterable[tuple[str, str]], view: View, entity: Callable[[str], Entity]
) -> list[Entity]:
    found: set[Entity] | None = None
    for predicate, constant in tests:
        facts = view(predicate)
        if constant:
            value = entity(constant)
            matching = {fact[0] for fact in facts if fact[1] == value}
        else:
            matching = set(facts)
        found = matching if found is None else found & matching
    return sorted(found or ())


def _placing(
    relations: set[tuple[str, ...]],
    unequal: set[frozenset[str]],
    conditions: dict[str, _Conditions],
    candidates: Callable[[str], list[Entity]],
) -> Callable[[View], float] | None:
    """Potential of a goal that asks for objects of one kind in a receptacle; None for others."""
    objects = sorted({args[1] for args in relations})
    places = {args[-1] for args in relations}
    if {args[0] for args in relations} != {"inreceptacle"} or len(places) != 1:
        return None
    pairs = {frozenset((a, b)) for a in objects for b in objects if a != b}
    kinds = [conditions.get(name) for name in objects]
    (place,) = places
    if unequal != pairs or None in kinds or any(kind != kinds[0] for kind in kinds):
        return None
    if place not in conditions or conditions[place].states:
        return None
    if not conditions[place].static or not kinds[0].static:
        return None
    states, things, receptacles = sorted(kinds[0].states), candidates(objects[0]), candidates(place)
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


def _lighting(
    relations: set[tuple[str, ...]],
    unequal: set[frozenset[str]],
    conditions: dict[str, _Conditions],
    candidates: Callable[[str], list[Entity]],
) -> Callable[[View], float] | None:
    """Potential of a goal that asks to hold an object by a lit lamp; None for others."""
    found = {args[0]: args[1:] for args in relations}
    expected = _LIGHT - {"istoggled"}
    if set(found) != expected or len(relations) != len(expected) or unequal:
        return None
    lamp, place = found["inreceptacle"]
    thing = found["holds"][1]
    joined = found["receptacleatlocation"] == (place, found["atlocation"][1])
    if not joined or thing == lamp or set(conditions) != {lamp, thing}:
        return None
    if conditions[lamp].states != {"istoggled"} or conditions[thing].states:
        return None
    if not conditions[lamp].static or not conditions[thing].static:
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
