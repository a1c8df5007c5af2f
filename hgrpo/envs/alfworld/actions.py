"""Actions of a domain compiled over facts: which commands apply, what they change and say."""

from collections.abc import Callable, Iterator
from operator import itemgetter

from hgrpo.envs.alfworld import pddl
from hgrpo.envs.alfworld.facts import Facts, Vocabulary
from hgrpo.envs.alfworld.grammar import (
    ActionText,
    Attribute,
    Each,
    FirstOf,
    Listing,
    Symbol,
)
from hgrpo.envs.alfworld.matching import Clause, FormulaCompiler, Frame, Step
from hgrpo.envs.alfworld.text import TextCompiler

Arguments = tuple[int, ...]


class Action:
    """One action schema; its parameters are the first slots of its frames.

    Attributes:
        pattern: the template as literals and parameter positions, or None where the text does not
            determine the arguments that appear in it.
    """

    def __init__(self, schema: pddl.ActionSchema, text: ActionText, writers: TextCompiler) -> None:
        self.name = schema.name
        self.schema = schema
        self.slots = writers.slots
        names = [name.removeprefix("?") for name, _ in schema.parameters]
        self.arity = len(names)
        self.scope = {name: self.slots.variable(name) for name, _ in schema.parameters}
        kinds = [kind for _, kind in schema.parameters]
        placeholders = {key: i for i, key in enumerate(zip(names, kinds, strict=True))}
        self.command: Callable[..., str] = writers.symbols(text.template, placeholders)
        self.feedback: Callable[..., str] = writers.symbols(text.feedback, placeholders)
        self.pattern = _pattern(text.template, placeholders)
        self._found = self.slots.fresh()

    def finish(
        self,
        vocabulary: Vocabulary,
        sizes: dict[str, int],
        domain: pddl.Domain,
        effects: "EffectCompiler",
    ) -> None:
        """Compile conditions and effects; the texts of all actions are compiled by then."""
        compiler = FormulaCompiler(self.slots, vocabulary, sizes, domain)
        formula, scope, kinds = (
            self.schema.precondition,
            self.scope,
            dict(self.schema.parameters),
        )
        named = {list(scope)[part] for part in self.pattern or () if isinstance(part, int)}
        self._all = self._search(compiler, formula, kinds, set(), vocabulary)
        self._some = self._search(compiler, formula, kinds, named, vocabulary)
        self.apply = effects.compile(self.schema, scope, compiler)
        self.changes = effects.changes(self.schema)

    def applicable(
        self, facts: Facts, frame: Frame, given: dict[int, int] | None = None
    ) -> list[Arguments]:
        """Argument tuples that apply now, each once; `given` fixes the template's parameters."""
        frame[self._found] = found = []
        if given is None:
            for step in self._all:
                step(facts, frame)
        else:
            for slot, entity in given.items():
                frame[slot] = entity
            for step in self._some:
                step(facts, frame)
        return list(dict.fromkeys(found)) if len(found) > 1 else found

    def _search(
        self,
        compiler: FormulaCompiler,
        formula: pddl.Formula,
        kinds: dict[str, str],
        bound: set[str],
        vocabulary: Vocabulary,
    ) -> list[Step]:
        found, arity = self._found, self.arity

        def collect(facts: Facts, frame: Frame) -> bool:
            frame[found].append(tuple(frame[:arity]))
            return False

        steps = []
        for clause in compiler.clauses(formula, self.scope, kinds):
            idle = _idle_test(self.schema, clause, self.scope, vocabulary)
            steps.append(compiler.run(clause, bound, _unless(idle, collect) if idle else collect))
        return steps

    def parse(self, command: str, entities: dict[str, list[int]]) -> Iterator[dict[int, int]]:
        """Ways to read `command` by the template: slots and the entities they name."""

        def read(parts: tuple, at: int) -> Iterator[dict[int, int]]:
            if not parts:
                if at == len(command):
                    yield {}
                return
            part, rest = parts[0], parts[1:]
            if isinstance(part, str):
                if command.startswith(part, at):
                    yield from read(rest, at + len(part))
                return
            ends = [len(command)] if not rest else range(at + 1, len(command) + 1)
            for end in ends:
                if rest and isinstance(rest[0], str) and not command.startswith(rest[0], end):
                    continue
                for entity in entities.get(command[at:end], ()):
                    for others in read(rest, end):
                        if others.get(part, entity) == entity:
                            yield {part: entity} | others

        return read(self.pattern, 0)


def _unless(idle: Step, then: Step) -> Step:
    return lambda facts, frame: not idle(facts, frame) and then(facts, frame)


def _pattern(
    template: tuple[Symbol, ...], placeholders: dict[tuple[str, str], int]
) -> tuple[str | int, ...] | None:
    variables = {name: slot for (name, _), slot in placeholders.items()}
    pattern: list[str | int] = []
    for symbol in template:
        if isinstance(symbol, str):
            pattern.append(symbol)
            continue
        each = symbol.each if isinstance(symbol, Listing) else symbol
        if not isinstance(each, Each) or not isinstance(each.expression, FirstOf):
            return None
        known = all(ph in placeholders for literal in each.query for ph in literal.placeholders)
        attribute = each.expression.alternatives[0].parts[0]
        simple = each.expression.alternatives == (
            type(each.expression.alternatives[0])((attribute,)),
        )
        if not known or not simple or not isinstance(attribute, Attribute):
            return None
        if attribute.attribute != "name" or attribute.variable not in variables:
            return None
        pattern.append(variables[attribute.variable])
    return tuple(pattern)


def _fact_getter(slots: tuple[int, ...]) -> Callable[[Frame], int | tuple[int, ...]]:
    return itemgetter(*slots) if slots else lambda frame: ()


def _idle_test(
    schema: pddl.ActionSchema, clause: Clause, scope: dict[str, int], vocabulary: Vocabulary
) -> Step | None:
    """Test of an action that changes nothing by its own conditions; None if it never is one.

    The planner's translator drops such operators: going to where one already is. Every addition
    must be a precondition, and every deletion must give way to an addition.
    """
    # For each effect, the ways to be without one: pairs of slots that hold the same entity.
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
            number = vocabulary.predicate(name)
            rivals = [rel.slots for rel, _ in clause.relations if rel.predicate == number]
        if not rivals:
            return None
        ways.append(
            [[(a, b) for a, b in zip(fact, slots, strict=True) if a != b] for slots in rivals]
        )
    if all(len(alternatives) == 1 and len(alternatives[0]) == 1 for alternatives in ways):
        pairs = {frozenset(alternatives[0][0]) for alternatives in ways}
        if len(pairs) == 1:
            one, other = next(iter(pairs))
            return lambda facts, frame: frame[one] == frame[other]

    def idle(facts: Facts, frame: Frame) -> bool:
        return all(
            any(all(frame[a] == frame[b] for a, b in pairs) for pairs in alternatives)
            for alternatives in ways
        )

    return idle


class EffectCompiler:
    """Compiles effects, keeping the extra facts that the grammar reads.

    Texts read `not_p(x)` only after an action deleted p(x), and see conditional effects as if
    every condition held, additions first: that is how the official engine keeps its facts.

    Args:
        negations: number of `p` to number of `not_p`, for those that texts read.
        shadows: number of `p` to the number that texts read instead, for predicates with
            conditional effects.
    """

    def __init__(
        self, vocabulary: Vocabulary, negations: dict[int, int], shadows: dict[int, int]
    ) -> None:
        self.vocabulary = vocabulary
        self.negations = negations
        self.shadows = shadows

    def changes(self, schema: pddl.ActionSchema) -> set[int]:
        """Numbers of the predicates that the action may change, the extra ones included."""
        changed = {self.vocabulary.predicate(effect.atom.predicate) for effect in schema.effects}
        changed |= {self.shadows[number] for number in changed if number in self.shadows}
        return changed | {self.negations[number] for number in changed if number in self.negations}

    def compile(
        self,
        schema: pddl.ActionSchema,
        scope: dict[str, int],
        compiler: FormulaCompiler,
    ) -> Step:
        """What applies the action to facts, given a frame with its arguments."""
        kinds = dict(schema.parameters)
        rows = []
        for effect in schema.effects:
            relation = compiler.relation(effect.atom, scope)
            condition = None
            if effect.condition is not None:
                condition = compiler.test(effect.condition, scope, kinds)
            rows.append(
                (
                    relation.predicate,
                    _fact_getter(relation.slots),
                    condition,
                    effect.negated,
                )
            )
            shadow = self.shadows.get(relation.predicate)
            if shadow is not None:
                rows.append((shadow, _fact_getter(relation.slots), None, effect.negated))
        return self._applier(rows)

    def _applier(self, rows: list[tuple]) -> Step:
        shadows = set(self.shadows.values())
        negations = self.negations
        adds = [(p, fact, test, negations.get(p)) for p, fact, test, neg in rows if not neg]
        removals = [(p, fact, test, negations.get(p)) for p, fact, test, neg in rows if neg]
        late = [row for row in removals if row[0] in shadows]
        early = [row for row in removals if row[0] not in shadows]
        # A deletion gives way to an addition of the same fact.
        risky = {p for p, *_ in adds} & {p for p, *_ in early}
        conditional = any(row[2] is not None for row in adds + early)

        def remove(facts: Facts, p: int, fact: object, negation: int | None) -> None:
            facts.remove(p, fact)
            if negation is not None:
                facts.add(negation, fact)

        def add(facts: Facts, p: int, fact: object, negation: int | None) -> None:
            facts.add(p, fact)
            if negation is not None:
                facts.remove(negation, fact)

        def apply(facts: Facts, frame: Frame) -> bool:
            gained, lost = adds, early
            if conditional:
                gained = [row for row in adds if row[2] is None or row[2](facts, frame)]
                lost = [row for row in early if row[2] is None or row[2](facts, frame)]
            added = {(p, fact(frame)) for p, fact, *_ in gained if p in risky} if risky else ()
            for p, fact, _, negation in lost:
                value = fact(frame)
                if p not in risky or (p, value) not in added:
                    remove(facts, p, value, negation)
            for p, fact, _, negation in gained:
                add(facts, p, fact(frame), negation)
            for p, fact, _, negation in late:
                remove(facts, p, fact(frame), negation)
            return True

        return apply
