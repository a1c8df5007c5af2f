"""Compiles PDDL actions into functions that find applicable actions, apply them and write texts."""

from collections.abc import Callable

from hgrpo.games.alfworld import pddl
from hgrpo.games.alfworld.effects import compile_effects
from hgrpo.games.alfworld.facts import Facts, key_getter
from hgrpo.games.alfworld.grammar import ActionText, Attribute, Each, Symbol
from hgrpo.games.alfworld.matching import Clause, FormulaCompiler, Frame, Step
from hgrpo.games.alfworld.text import NEGATION, TextCompiler

Arguments = tuple[int, ...]
# Cache an action's commands if each predicate it reads has at most this many facts initially.
_FEW = 8


class Action:
    """One compiled action. The first `arity` slots of its frame hold the action's arguments.

    Args:
        fluent: names of the predicates that actions change.

    Attributes:
        conditions: number of `fluent` predicates in the precondition.
        named: function that selects the arguments on which the command's text depends; None if the
            text may also depend on facts that can change.
        watches: patterns (keys of `Facts.index`) of all facts that can change and that affect which
            commands are applicable; None if there are too many for a cache key, or `named` is None.
    """

    def __init__(
        self, schema: pddl.ActionSchema, text: ActionText, writers: TextCompiler, fluent: set[str]
    ) -> None:
        self.schema = schema
        self.slots = writers.slots
        self.arity = len(schema.parameters)
        self.scope = {name: self.slots.variable(name) for name, _ in schema.parameters}
        placeholders = {
            (name.removeprefix("?"), kind): i for i, (name, kind) in enumerate(schema.parameters)
        }
        self.command: Callable[..., str] = writers.symbols(text.template, placeholders)
        self.feedback: Callable[..., str] = writers.symbols(text.feedback, placeholders)
        named = _named(text.template, placeholders, fluent)
        self.named = None if named is None else key_getter(named)
        self._reads = pddl.predicates(schema.precondition) & fluent
        self.conditions = len(self._reads)
        self._results = self.slots.fresh()

    def finish(self, compiler: FormulaCompiler, negations: dict[int, int]) -> None:
        """Compile precondition and effects. The texts of all actions must be compiled already."""
        self._steps = self._search(compiler)
        self.apply = compile_effects(self.schema, self.scope, compiler, negations)
        self.watches: tuple[int, ...] | None = None
        if self.named is not None and all(compiler.sizes[name] <= _FEW for name in self._reads):
            pattern, number = compiler.vocabulary.pattern, compiler.vocabulary.predicate
            self.watches = tuple(pattern(number(name), ()) for name in sorted(self._reads))

    def applicable(self, facts: Facts, frame: Frame) -> set[Arguments]:
        """Argument tuples that satisfy the precondition and for which the action is not idle."""
        frame[self._results] = results = set()
        for step in self._steps:
            step(facts, frame)
        return results

    def _search(self, compiler: FormulaCompiler) -> list[Step]:
        results, arity = self._results, self.arity

        def collect(facts: Facts, frame: Frame) -> bool:
            frame[results].add(tuple(frame[:arity]))
            return False

        steps = []
        kinds = dict(self.schema.parameters)
        for clause in compiler.clauses(self.schema.precondition, self.scope, kinds):
            idle = _idle_test(self.schema, clause, self.scope)
            steps.append(compiler.run(clause, set(), _unless(idle, collect) if idle else collect))
        return steps


def _unless(idle: Step, then: Step) -> Step:
    return lambda facts, frame: not idle(facts, frame) and then(facts, frame)


def _named(
    template: tuple[Symbol, ...], placeholders: dict[tuple[str, str], int], fluent: set[str]
) -> tuple[int, ...] | None:
    """Positions of the arguments that affect the text; None if mutable facts may also affect it."""
    variables = {name: slot for (name, _), slot in placeholders.items()}
    named: set[int] = set()
    for symbol in template:
        match symbol:
            case str():
                continue
            case Each(((Attribute(name, "name"),),), query) if name in variables and all(
                literal.predicate.removeprefix(NEGATION) not in fluent
                and set(literal.placeholders) <= set(placeholders)
                for literal in query
            ):
                named |= {placeholders[p] for literal in query for p in literal.placeholders}
                named.add(variables[name])
            case _:
                return None
    return tuple(sorted(named))


def _idle_test(schema: pddl.ActionSchema, clause: Clause, scope: dict[str, int]) -> Step | None:
    """Return a function that tests whether an action is idle, or None if it is never idle.

    An action is idle if it changes nothing: all facts that it adds are preconditions, and all facts
    that it deletes are also added. An example is going to the place where the agent already is. The
    planner's translator removes idle actions. Actions with conditional effects never count as idle.
    """
    # For each effect, `ways` contains several lists of slot pairs. The effect is a no-op if, for at
    # least one of these lists, the two slots of every pair hold the same entity.
    ways: list[list[list[tuple[int, int]]]] = []
    added: dict[str, list[tuple[int, ...]]] = {}
    for effect in sorted(schema.effects, key=lambda effect: effect.negated):
        name, args = effect.atom.predicate, effect.atom.args
        if effect.condition is not None or not set(args) <= set(scope):
            return None
        fact = tuple(scope[arg] for arg in args)
        if effect.negated:
            rivals = added.get(name, [])
        else:
            added.setdefault(name, []).append(fact)
            rivals = [relation.slots for relation, other in clause.relations if other == name]
        if not rivals:
            return None
        ways.append(
            [[(a, b) for a, b in zip(fact, slots, strict=True) if a != b] for slots in rivals]
        )
    return lambda facts, frame: all(
        any(all(frame[a] == frame[b] for a, b in pairs) for pairs in alternatives)
        for alternatives in ways
    )
