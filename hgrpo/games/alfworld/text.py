"""Compiles a grammar into functions that render text, and computes display names of entities."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from hgrpo.errors import UserError
from hgrpo.games.alfworld.facts import Facts, Vocabulary
from hgrpo.games.alfworld.grammar import (
    Attribute,
    Each,
    Expression,
    Grammar,
    Literal,
    Query,
    RuleCall,
    Symbol,
)
from hgrpo.games.alfworld.matching import Frame, Relation, Slots, Step, join, succeed
from hgrpo.games.alfworld.pddl import Domain

Writer = Callable[[Facts, Frame, "Entities"], str]
Scope = dict[tuple[str, str], int]
NEGATION = "not_"
TASK_RULE = "task"
_SYMBOLS = {"_bar_": "|", "_minus_": "-", "_plus_": "+", "_dot_": ".", "_comma_": ","}


@dataclass(frozen=True, slots=True)
class Entities:
    """The display name and the id of each entity, and the game's task sentence."""

    names: list[str]
    ids: list[str]
    task: str


@dataclass(eq=False)
class TextCompiler:
    """Compiles the symbols of one grammar over one frame layout.

    A placeholder is a (name, type) pair, and a scope maps placeholders to slots. A query adds its
    placeholders to the scope. Different placeholders are bound to different entities.
    """

    grammar: Grammar
    slots: Slots
    vocabulary: Vocabulary
    domain: Domain
    text_predicate: Callable[[str], int]  # name in a query -> index of the predicate
    _active: list[str] = field(default_factory=list)

    def symbols(self, symbols: tuple[Symbol, ...], scope: Scope) -> Writer:
        """Return a closure that renders `symbols` in sequence.

        Raises:
            UserError: a rule or variable is unknown, a rule calls itself, or a query is ill-typed.
        """
        return _concatenate(self._symbol(symbol, scope) for symbol in symbols)

    def _symbol(self, symbol: Symbol, scope: Scope) -> str | Writer:
        if isinstance(symbol, str):
            return symbol
        if isinstance(symbol, RuleCall):
            return self.rule(symbol.name, scope)
        items = self._items(symbol, scope)
        if symbol.listed:
            return self._listing(items, scope)
        return lambda facts, frame, entities: "".join(items(facts, frame, entities))

    def _listing(self, items: Callable, scope: Scope) -> Writer:
        # Rules such as `list_empty` are optional, because some grammars never need them.
        empty = self._optional("list_empty", scope)
        separator = self._optional("list_separator", scope)
        last = self._optional("list_last_separator", scope)

        def write(facts: Facts, frame: Frame, entities: Entities) -> str:
            texts = items(facts, frame, entities)
            if len(texts) > 1:
                comma = separator(facts, frame, entities) if len(texts) > 2 else ""
                head = comma.join(texts[:-1])
                return head + last(facts, frame, entities) + texts[-1]
            return texts[0] if texts else empty(facts, frame, entities)

        return write

    def _optional(self, name: str, scope: Scope) -> Writer:
        if name in self.grammar.rules:
            return self.rule(name, scope)

        def missing(facts: Facts, frame: Frame, entities: Entities) -> str:
            raise UserError(f"the grammar has no rule {name!r}")

        return missing

    def _items(self, each: Each, scope: Scope) -> Callable[..., list[str]]:
        inner = self._extended(scope, each.query)
        if isinstance(each.expression, RuleCall):
            write = self.rule(each.expression.name, inner)
        else:
            write = self._expression(each.expression, inner)
        if not each.query:
            return lambda facts, frame, entities: [write(facts, frame, entities)]
        texts, known = self.slots.fresh(), self.slots.fresh()

        def emit(facts: Facts, frame: Frame) -> bool:
            frame[texts].append(write(facts, frame, frame[known]))
            return False

        run = self._query(each.query, scope, emit)

        def items(facts: Facts, frame: Frame, entities: Entities) -> list[str]:
            frame[texts], frame[known] = [], entities
            run(facts, frame)
            return frame[texts]

        return items

    def rule(self, name: str, scope: Scope) -> Writer:
        """Return a closure that renders a rule: the first alternative whose condition holds."""
        if name == TASK_RULE and TASK_RULE not in self.grammar.rules:
            return lambda facts, frame, entities: entities.task
        if name not in self.grammar.rules:
            raise UserError(f"the grammar has no rule {name!r}")
        if name in self._active:
            raise UserError(f"the grammar's rule {name!r} calls itself")
        self._active.append(name)
        branches: list[tuple[Step | None, Writer]] = []
        for alternative in self.grammar.rules[name]:
            query = alternative.condition
            condition = self._query(query, scope, succeed) if query else None
            branches.append((condition, self.symbols(alternative.symbols, scope)))
            if condition is None:
                break
        self._active.pop()

        def write(facts: Facts, frame: Frame, entities: Entities) -> str:
            for condition, writer in branches:
                if condition is None or condition(facts, frame):
                    return writer(facts, frame, entities)
            raise UserError(f"no alternative of the grammar's rule {name!r} applies")

        return write

    def _extended(self, scope: Scope, query: Query) -> Scope:
        extended = dict(scope)
        for literal in query:
            for placeholder in literal.placeholders:
                slot = self.slots.variable((placeholder, id(query)))
                extended.setdefault(placeholder, slot)
        return extended

    def _query(self, query: Query, scope: Scope, then: Step) -> Step:
        """Return a step that calls `then` for each assignment that satisfies `query`."""
        extended = self._extended(scope, query)
        places = list(extended.items())
        distinct = {
            slot: tuple(rival for other, rival in places[:i] if self._overlap(other, placeholder))
            for i, (placeholder, slot) in enumerate(places)
            if placeholder not in scope
        }
        relations = []
        for literal in query:
            self._check_types(literal)
            slots = tuple(extended[placeholder] for placeholder in literal.placeholders)
            relations.append(Relation(self.text_predicate(literal.predicate), slots))
        return join(relations, set(scope.values()), self.vocabulary, then, distinct)

    def _overlap(self, one: tuple[str, str], other: tuple[str, str]) -> bool:
        is_a = self.domain.is_a
        return is_a(one[1], other[1]) or is_a(other[1], one[1])

    def _check_types(self, literal: Literal) -> None:
        declared = self.domain.predicates.get(literal.predicate.removeprefix(NEGATION))
        if declared is None:
            return
        if len(literal.placeholders) != len(declared):
            raise UserError(f"the grammar's {literal.predicate!r} takes {len(declared)} arguments")
        for (name, kind), expected in zip(literal.placeholders, declared, strict=True):
            if not self.domain.is_a(expected, kind):
                raise UserError(
                    f"the grammar uses {literal.predicate!r} with the argument {name}: {kind}, but "
                    f"the domain declares {expected}"
                )

    def _expression(self, expression: Expression, scope: Scope) -> Writer:
        variables = {name: slot for (name, _), slot in scope.items()}
        writers = [
            _concatenate(
                part if isinstance(part, str) else _attribute(part, variables) for part in parts
            )
            for parts in expression
        ]
        return lambda facts, frame, entities: next(
            filter(None, (write(facts, frame, entities) for write in writers)), ""
        )


def _attribute(part: Attribute, variables: dict[str, int]) -> str | Writer:
    if part.variable not in variables:
        raise UserError(f"the grammar uses an unknown variable {part.variable!r}")
    slot = variables[part.variable]
    if part.attribute == "name":
        return lambda facts, frame, entities: entities.names[frame[slot]]
    if part.attribute == "id":
        return lambda facts, frame, entities: entities.ids[frame[slot]]
    return "a" if part.attribute == "indefinite" else "the"


def _concatenate(parts: Iterable[str | Writer]) -> Writer:
    pieces: list[str | Writer] = []
    for part in parts:
        if isinstance(part, str) and pieces and isinstance(pieces[-1], str):
            pieces[-1] += part
        else:
            pieces.append(part)
    if len(pieces) == 1 and not isinstance(pieces[0], str):
        return pieces[0]

    def write(facts: Facts, frame: Frame, entities: Entities) -> str:
        return "".join(
            [piece if piece.__class__ is str else piece(facts, frame, entities) for piece in pieces]
        )

    return write


def display_names(ids: Iterable[str]) -> dict[str, str]:
    """Map each of ALFRED's ids to its display name, which depends on all ids.

    For example, `mug_bar__minus_00_dot_84_bar_...` becomes `mug 2`. If there are n ids of a kind,
    they are sorted and get the numbers n to 1. If an id contains `basin`, "basin" is appended to
    the kind. An id without `_bar_` is displayed as the id plus a space. These rules are those of
    the official implementation.
    """
    kinds: dict[str, str | None] = {}
    for name in sorted(ids):
        kind, bar, _ = name.partition("_bar_")
        if "basin" in name:
            kind += "basin"
        kinds[name] = kind if bar else None
    left = Counter(kinds.values())
    names: dict[str, str] = {}
    for name, kind in kinds.items():
        names[name] = _plain(name) + " " if kind is None else f"{_plain(kind)} {left[kind]}"
        left[kind] -= 1
    return names


@lru_cache(maxsize=4096)
def _plain(text: str) -> str:
    for mangled, symbol in _SYMBOLS.items():
        text = text.replace(mangled, symbol)
    return text
