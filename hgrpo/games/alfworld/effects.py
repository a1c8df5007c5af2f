"""Compiles the effects of actions on facts, and on extra facts that only texts read.

A text may read `not_p(x)`. An action that deletes a reachable p(x) adds this fact. If p has
conditional effects, texts do not read p but a copy of it, the shadow. In the shadow, all effects
happen, whatever their conditions, and additions come before deletions.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hgrpo.games.alfworld import pddl
from hgrpo.games.alfworld.facts import Fact, Facts, Vocabulary, key_getter
from hgrpo.games.alfworld.matching import FormulaCompiler, Frame, Slots, Step


@dataclass(frozen=True)
class _Row:
    """One effect: it adds `fact(frame)` to `predicate`, or deletes it if `negated`."""

    predicate: int
    fact: Callable[[Frame], Fact]
    condition: Step | None
    negated: bool
    negation: int | None  # index of `not_p` if a formula uses it, else None

    def fires(self, facts: Facts, frame: Frame) -> bool:
        return self.condition is None or self.condition(facts, frame)

    def add(self, facts: Facts, fact: Fact) -> None:
        facts.add(self.predicate, fact)
        if self.negation is not None:
            facts.remove(self.negation, fact)

    def remove(self, facts: Facts, fact: Fact) -> None:
        facts.remove(self.predicate, fact)
        if self.negation is not None:
            possible = facts.possible.get(self.predicate)
            if possible is None or fact in possible:
                facts.add(self.negation, fact)


def compile_effects(
    schema: pddl.ActionSchema,
    scope: dict[str, int],
    compiler: FormulaCompiler,
    negations: dict[int, int],
    shadows: dict[int, int],
) -> Step:
    """A step that applies an action to facts, given a frame with the action's arguments.

    Args:
        negations: maps the index of p or of its shadow to the index of `not_p`, for each `not_p`
            that some text reads.
        shadows: maps the index of p to the index of its shadow, for each p that has a shadow.
    """
    kinds = dict(schema.parameters)
    rows = []
    for effect in schema.effects:
        relation = compiler.relation(effect.atom, scope)
        condition = None
        if effect.condition is not None:
            condition = compiler.test(effect.condition, scope, kinds)
        targets = [(relation.predicate, condition)]
        if relation.predicate in shadows:
            targets.append((shadows[relation.predicate], None))
        for number, test in targets:
            negation = negations.get(number)
            fact = key_getter(relation.slots)
            rows.append(_Row(number, fact, test, effect.negated, negation))
    read_late = set(shadows.values())
    adds = [row for row in rows if not row.negated]
    removals = [row for row in rows if row.negated and row.predicate not in read_late]
    late = [row for row in rows if row.negated and row.predicate in read_late]

    def apply(facts: Facts, frame: Frame) -> bool:
        gained = [(row, row.fact(frame)) for row in adds if row.fires(facts, frame)]
        lost = [(row, row.fact(frame)) for row in removals if row.fires(facts, frame)]
        # If an action adds and deletes the same fact, the fact holds afterwards.
        added = {(row.predicate, fact) for row, fact in gained}
        for row, fact in lost:
            if (row.predicate, fact) not in added:
                row.remove(facts, fact)
        for row, fact in gained:
            row.add(facts, fact)
        for row in late:
            row.remove(facts, row.fact(frame))
        return True

    return apply


class Reachability:
    """Finds the facts that could become true if actions deleted nothing and all negations held.

    The planner's translator knows only these facts. For any other fact p(x), `not_p(x)` never
    holds, even after an action that deletes p(x).
    """

    def __init__(self, domain: pddl.Domain, vocabulary: Vocabulary, sizes: dict[str, int]) -> None:
        self._steps: list[tuple[Slots, list[Step]]] = []
        for schema in domain.actions:
            for effect in schema.effects:
                if not effect.negated:
                    compiler = FormulaCompiler(Slots(), vocabulary, sizes, domain)
                    self._steps.append((compiler.slots, _achievers(schema, effect, compiler)))

    def closure(self, start: Facts, entities: dict[str, int]) -> list[set[Fact]]:
        """The facts that are reachable from `start`: one set per predicate, in index order."""
        facts = start.copy()
        size = -1
        while size != (size := sum(map(len, facts.sets))):
            for slots, steps in self._steps:
                for step in steps:
                    step(facts, slots.frame(entities))
        return facts.sets


def _achievers(
    schema: pddl.ActionSchema, effect: pddl.Effect, compiler: FormulaCompiler
) -> list[Step]:
    """Steps that add the effect's fact for all arguments that meet the non-negated conditions."""
    scope = {name: compiler.slots.variable(name) for name, _ in schema.parameters}
    kinds = dict(schema.parameters)
    parts = [schema.precondition] + ([effect.condition] if effect.condition else [])
    relation = compiler.relation(effect.atom, scope)
    fact = key_getter(relation.slots)

    def add(facts: Facts, frame: Frame) -> bool:
        facts.add(relation.predicate, fact(frame))
        return False

    formula = pddl.And(tuple(map(_relaxed, parts)))
    return [compiler.run(clause, set(), add) for clause in compiler.clauses(formula, scope, kinds)]


def _relaxed(formula: pddl.Formula) -> pddl.Formula:
    """`formula` with every negation replaced by true."""
    if isinstance(formula, pddl.And | pddl.Or):
        return replace(formula, parts=tuple(map(_relaxed, formula.parts)))
    if isinstance(formula, pddl.Exists):
        return replace(formula, part=_relaxed(formula.part))
    return formula if isinstance(formula, pddl.Atom) else pddl.And(())
