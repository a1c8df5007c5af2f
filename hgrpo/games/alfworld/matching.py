"""Compiles conjunctive queries over facts to nested closures.

A query operates on a frame, which is a list with one slot per variable or constant. It enumerates
the assignments of the free slots that satisfy it, and calls `then(facts, frame)` for each. It stops
as soon as `then` returns True.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from hgrpo.errors import UserError
from hgrpo.games.alfworld import pddl
from hgrpo.games.alfworld.facts import Facts, Vocabulary, key_getter

Frame = list
Step = Callable[[Facts, Frame], bool]


class Slots:
    """Assigns a slot of a frame to each constant and to each variable (any hashable key)."""

    def __init__(self) -> None:
        self.places: dict = {}
        self.constants: dict[str, int] = {}

    def variable(self, key: object) -> int:
        return self.places.setdefault(key, self._size())

    def fresh(self) -> int:
        return self.variable(object())

    def constant(self, name: str) -> int:
        return self.constants.setdefault(name, self._size())

    def _size(self) -> int:
        return len(self.places) + len(self.constants)

    def frame(self, entities: dict[str, int]) -> Frame:
        """Create a frame that holds the constants. Those that are not in `entities` become -1."""
        frame: Frame = [None] * self._size()
        for name, place in self.constants.items():
            frame[place] = entities.get(name, -1)
        return frame


@dataclass(frozen=True)
class Relation:
    """The condition that a fact holds: index of the predicate, and slots of the arguments."""

    predicate: int
    slots: tuple[int, ...]


def type_predicate(kind: str) -> str:
    """Name of the auxiliary predicate that holds for all entities of a type."""
    return f"@{kind}"


def succeed(facts: Facts, frame: Frame) -> bool:
    """Pass this function as `then` to stop at the first match, e.g. to test whether one exists."""
    return True


def _fail(facts: Facts, frame: Frame) -> bool:
    return False


def holds(relation: Relation) -> Step:
    """Return a step that tests whether a relation holds, given that all its slots are filled."""
    predicate, fact = relation.predicate, key_getter(relation.slots)
    return lambda facts, frame: fact(frame) in facts.sets[predicate]


def join(
    relations: Sequence[Relation],
    bound: set[int],
    vocabulary: Vocabulary,
    then: Step,
    distinct: dict[int, tuple[int, ...]] | None = None,
    tests: Sequence[tuple[set[int], Step]] = (),
) -> Step:
    """Compile nested loops over `relations`, in this order. Each loop iterates over sorted facts.

    Args:
        bound: slots that are filled before the query runs.
        distinct: maps a free slot to earlier slots, whose values the free slot must not take.
        tests: (slots, condition) pairs. A condition is tested as soon as its slots are filled.
    """
    filled = set(bound)
    waiting = list(tests)
    wrappers: list[Callable[[Step], Step]] = []
    for relation in [None, *relations]:
        if relation is not None:
            if set(relation.slots) <= filled:
                wrappers.append(partial(_both, holds(relation)))
            else:
                known = frozenset(filled)
                wrappers.append(partial(_scan, relation, known, vocabulary, distinct or {}))
                filled |= set(relation.slots)
        wrappers += [partial(_both, test) for slots, test in waiting if slots <= filled]
        waiting = [entry for entry in waiting if not entry[0] <= filled]
    for wrapper in reversed(wrappers):
        then = wrapper(then)
    return then


def _both(test: Step, then: Step) -> Step:
    return lambda facts, frame: test(facts, frame) and then(facts, frame)


def _either(test: Step, other: Step) -> Step:
    return lambda facts, frame: test(facts, frame) or other(facts, frame)


def _scan(
    relation: Relation,
    known: frozenset[int],
    vocabulary: Vocabulary,
    distinct: dict[int, tuple[int, ...]],
    then: Step,
) -> Step:
    slots = relation.slots
    at = tuple(i for i, slot in enumerate(slots) if slot in known)
    pattern = vocabulary.pattern(relation.predicate, at)
    key = key_getter(tuple(slots[i] for i in at))
    free = [(i, slot) for i, slot in enumerate(slots) if slot not in known]
    if len(free) == 1:
        ((position, slot),) = free
        bare, others = len(slots) == 1, distinct.get(slot, ())

        def scan_one(facts: Facts, frame: Frame) -> bool:
            for fact in facts.index[pattern].get(key(frame), ()):
                value = fact if bare else fact[position]
                if others and any(frame[other] == value for other in others):
                    continue
                frame[slot] = value
                if then(facts, frame):
                    return True
            return False

        return scan_one

    def scan(facts: Facts, frame: Frame) -> bool:
        for fact in facts.index[pattern].get(key(frame), ()):
            seen: set[int] = set()
            for position, slot in free:
                value = fact[position]
                if slot in seen:
                    if frame[slot] != value:
                        break
                    continue
                if any(frame[other] == value for other in distinct.get(slot, ())):
                    break
                frame[slot] = value
                seen.add(slot)
            else:
                if then(facts, frame):
                    return True
        return False

    return scan


@dataclass(eq=False)
class FormulaCompiler:
    """Compiles PDDL formulas over one frame layout."""

    slots: Slots
    vocabulary: Vocabulary
    sizes: dict[str, int]  # typical number of facts of each predicate, to order loops
    domain: pddl.Domain

    def find(
        self, formula: pddl.Formula, scope: dict[str, int], kinds: dict[str, str], then: Step
    ) -> list[Step]:
        """Return steps that together enumerate all assignments that satisfy `formula`."""
        return [
            self.run(clause, set(scope), then) for clause in self.clauses(formula, scope, kinds)
        ]

    def run(self, clause: "Clause", bound: set[str], then: Step) -> Step:
        """Return a step that enumerates assignments of `clause` for given values of `bound`."""
        filled = {clause.scope[name] for name in bound} | set(self.slots.constants.values())
        tests = []
        for part, names in clause.filters:
            inner = {name: names[name] for name in _variables(part) if name in names}
            kinds = {name: clause.kinds.get(name, pddl.ROOT_TYPE) for name in inner}
            tests.append((set(inner.values()), self.test(part, inner, kinds)))
        return join(self._plan(clause, filled), filled, self.vocabulary, then, tests=tests)

    def relation(self, atom: pddl.Atom, scope: dict[str, int]) -> Relation:
        return Relation(self.vocabulary.predicate(atom.predicate), self._args(atom, scope))

    def test(self, formula: pddl.Formula, scope: dict[str, int], kinds: dict[str, str]) -> Step:
        """Return a step that tests `formula`; all slots in `scope` must be filled."""
        if isinstance(formula, pddl.Atom):
            slots = self._args(formula, scope)
            if formula.predicate == "=":
                left, right = slots
                return lambda facts, frame: frame[left] == frame[right]
            return holds(Relation(self.vocabulary.predicate(formula.predicate), slots))
        if isinstance(formula, pddl.Not):
            inner = self.test(formula.part, scope, kinds)
            return lambda facts, frame: not inner(facts, frame)
        if isinstance(formula, pddl.Exists):
            inner = {name: scope[name] for name in _variables(formula)}
            steps = self.find(formula, inner, kinds, succeed)
        else:
            steps = [self.test(part, scope, kinds) for part in formula.parts]
        if isinstance(formula, pddl.And):
            return reduce(_both, steps or [succeed])
        return reduce(_either, steps or [_fail])

    def _args(self, atom: pddl.Atom, scope: dict[str, int]) -> tuple[int, ...]:
        slots = []
        for arg in atom.args:
            if not arg.startswith("?"):
                slots.append(self.slots.constant(arg))
            elif arg in scope:
                slots.append(scope[arg])
            else:
                raise UserError(f"variable {arg!r} of {atom.predicate!r} is not declared")
        return tuple(slots)

    def clauses(
        self, formula: pddl.Formula, scope: dict[str, int], kinds: dict[str, str]
    ) -> list["Clause"]:
        """Return conjunctions whose disjunction is equivalent to `formula`.

        An `or` is split into several conjunctions only if it contains a variable that no relation
        outside the `or` binds.
        """
        clauses = self._expand(formula, scope, kinds)
        for clause in clauses:
            # Add a type relation for each variable whose type the other relations do not imply.
            # `typed` maps each slot to the types that those relations declare for the slot.
            typed: dict[int, list[str]] = {}
            for relation, name in clause.relations:
                for slot, kind in zip(relation.slots, self.domain.predicates[name], strict=True):
                    typed.setdefault(slot, []).append(kind)
            for slot, kind in [(scope[name], kinds[name]) for name in scope] + clause.extra:
                if not any(self.domain.is_a(declared, kind) for declared in typed.get(slot, ())):
                    listing = type_predicate(kind)
                    relation = Relation(self.vocabulary.predicate(listing), (slot,))
                    clause.relations.append((relation, listing))
        return clauses

    def _expand(
        self, formula: pddl.Formula, scope: dict[str, int], kinds: dict[str, str]
    ) -> list["Clause"]:
        clause = Clause(dict(scope), dict(kinds), [], [], [])
        todo = [(formula, clause.scope)]
        while todo:
            part, names = todo.pop(0)
            if isinstance(part, pddl.And):
                todo = [(inner, names) for inner in part.parts] + todo
            elif isinstance(part, pddl.Exists):
                inner_names = dict(names)
                for name, kind in part.variables:
                    inner_names[name] = self.slots.fresh()
                    clause.extra.append((inner_names[name], kind))
                todo.insert(0, (part.part, inner_names))
            elif isinstance(part, pddl.Atom) and part.predicate != "=":
                clause.relations.append((self.relation(part, names), part.predicate))
            else:
                clause.filters.append((part, names))
        covered = {slot for relation, _ in clause.relations for slot in relation.slots}
        for i, (part, names) in enumerate(clause.filters):
            free = {names[name] for name in _variables(part) if name in names}
            if isinstance(part, pddl.Or) and not free <= covered:
                return self._split(clause, i)
        return [clause]

    def _split(self, clause: "Clause", i: int) -> list["Clause"]:
        part, names = clause.filters[i]
        return [
            replace(
                clause,
                extra=clause.extra + inner.extra,
                relations=clause.relations + inner.relations,
                filters=clause.filters[:i] + clause.filters[i + 1 :] + inner.filters,
            )
            for branch in part.parts
            for inner in self._expand(branch, names, clause.kinds)
        ]

    def _plan(self, clause: "Clause", filled: set[int]) -> list[Relation]:
        """Order relations greedily: first those without free slots, then the most selective."""
        left, known, order = list(clause.relations), set(filled), []

        def cost(entry: tuple[Relation, str]) -> float:
            relation, name = entry
            free = sum(slot not in known for slot in relation.slots)
            return max(self.sizes.get(name, 50), 1) ** (free / len(relation.slots)) if free else 0.0

        while left:
            best = min(left, key=cost)
            left.remove(best)
            order.append(best[0])
            known |= set(best[0].slots)
        return order


@dataclass
class Clause:
    """A conjunction of `relations` and `filters`.

    `extra` contains the (slot, type) of each variable that an `exists` introduces.
    """

    scope: dict[str, int]
    kinds: dict[str, str]
    extra: list[tuple[int, str]]
    relations: list[tuple[Relation, str]]
    filters: list[tuple[pddl.Formula, dict[str, int]]]


def _variables(formula: pddl.Formula) -> set[str]:
    if isinstance(formula, pddl.Atom):
        return {arg for arg in formula.args if arg.startswith("?")}
    if isinstance(formula, pddl.Not):
        return _variables(formula.part)
    if isinstance(formula, pddl.Exists):
        return _variables(formula.part) - {name for name, _ in formula.variables}
    return set().union(*(_variables(part) for part in formula.parts))
