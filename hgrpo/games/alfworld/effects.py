"""Compiles the effects of actions into functions that change facts.

Conditions can contain negated predicates, such as `not_p`. The fact `not_p(x)` is added when p(x)
is deleted, and deleted when p(x) is added.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hgrpo.games.alfworld import pddl
from hgrpo.games.alfworld.facts import Fact, Facts, key_getter
from hgrpo.games.alfworld.matching import FormulaCompiler, Frame, Step


@dataclass(frozen=True)
class _Row:
    """One effect: adds `fact(frame)` to a predicate's facts or, if `negated`, removes this fact."""

    predicate: int
    fact: Callable[[Frame], Fact]
    condition: Step | None
    negated: bool
    negation: int | None  # index of the predicate `not_p` if a formula uses it, else None

    def fires(self, facts: Facts, frame: Frame) -> bool:
        return self.condition is None or self.condition(facts, frame)

    def add(self, facts: Facts, fact: Fact) -> None:
        facts.add(self.predicate, fact)
        if self.negation is not None:
            facts.remove(self.negation, fact)

    def remove(self, facts: Facts, fact: Fact) -> None:
        facts.remove(self.predicate, fact)
        if self.negation is not None:
            facts.add(self.negation, fact)


def compile_effects(
    schema: pddl.ActionSchema,
    scope: dict[str, int],
    compiler: FormulaCompiler,
    negations: dict[int, int],
) -> Step:
    """Return a function (facts, frame) that applies the action to the arguments in the frame.

    Args:
        negations: maps the index of a predicate p to that of `not_p`, if a text uses `not_p`.
    """
    rows = []
    for effect in schema.effects:
        relation = compiler.relation(effect.atom, scope)
        condition = None
        if effect.condition is not None:
            condition = compiler.test(effect.condition, scope, dict(schema.parameters))
        number, fact = relation.predicate, key_getter(relation.slots)
        rows.append(_Row(number, fact, condition, effect.negated, negations.get(number)))

    def apply(facts: Facts, frame: Frame) -> bool:
        happens = [(row, row.fact(frame)) for row in rows if row.fires(facts, frame)]
        # In PDDL, a fact that an action both adds and deletes holds afterwards.
        added = {(row.predicate, fact) for row, fact in happens if not row.negated}
        for row, fact in happens:
            if row.negated and (row.predicate, fact) not in added:
                row.remove(facts, fact)
        for row, fact in happens:
            if not row.negated:
                row.add(facts, fact)
        return True

    return apply
