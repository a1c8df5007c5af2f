"""Parses the subset of PDDL that ALFRED's domain and problems use.

As in the planner's translator, all text is converted to lower case.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hgrpo.errors import UserError

_COMMENT = re.compile(r";[^\n]*")
_TOKEN = re.compile(r"[()]|\??[^\s()?]+")
ROOT_TYPE = "object"


@dataclass(frozen=True)
class Atom:
    """A predicate with variables (`?x`) and object names as arguments; `=` is also a predicate."""

    predicate: str
    args: tuple[str, ...]


@dataclass(frozen=True)
class Not:
    """True if `part` is false."""

    part: "Formula"


@dataclass(frozen=True)
class And:
    """True if all `parts` are true; an empty conjunction is true."""

    parts: tuple["Formula", ...]


@dataclass(frozen=True)
class Or:
    """True if at least one of `parts` is true."""

    parts: tuple["Formula", ...]


@dataclass(frozen=True)
class Exists:
    """True if `part` is true for some values of `variables`, which are (name, type) pairs."""

    variables: tuple[tuple[str, str], ...]
    part: "Formula"


Formula = Atom | Not | And | Or | Exists


@dataclass(frozen=True)
class Effect:
    """Makes `atom` true, or false if `negated`.

    If there is a `condition`, the effect occurs only if the condition is true before the action.
    """

    condition: Formula | None
    atom: Atom
    negated: bool


@dataclass(frozen=True)
class ActionSchema:
    """An action, with its parameters as (name, type) pairs."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    precondition: Formula
    effects: tuple[Effect, ...]


@dataclass(frozen=True)
class Domain:
    """`types` maps a type to its parent; `predicates` maps a predicate to its argument types."""

    types: dict[str, str]
    predicates: dict[str, tuple[str, ...]]
    constants: tuple[tuple[str, str], ...]
    actions: tuple[ActionSchema, ...]

    def is_a(self, child: str, parent: str) -> bool:
        """Whether `child` equals `parent` or is a subtype of it. Every type is an `object`."""
        while child != parent and child != ROOT_TYPE:
            child = self.types.get(child, ROOT_TYPE)
        return child == parent


@dataclass(frozen=True)
class Problem:
    """Objects with their types, the atoms that are true initially, numeric facts, and the goal."""

    objects: dict[str, str]
    init: tuple[tuple[str, ...], ...]
    numeric: tuple[tuple[str, ...], ...]
    goal: Formula


def atoms(formula: Formula) -> list[Atom]:
    """The atoms in a formula, from left to right."""
    if isinstance(formula, Atom):
        return [formula]
    parts = formula.parts if isinstance(formula, And | Or) else (formula.part,)
    return [atom for part in parts for atom in atoms(part)]


def predicates(formula: Formula) -> set[str]:
    """Names of the predicates in a formula."""
    return {atom.predicate for atom in atoms(formula)} - {"="}


def canonical(text: str) -> str:
    """Remove comments, extra spaces and upper case, none of which affect parsing."""
    return " ".join(_TOKEN.findall(_strip(text)))


def _strip(text: str) -> str:
    return (_COMMENT.sub("", text) if ";" in text else text).lower()


def _nested(text: str) -> list:
    stack: list[list] = [[]]
    for token in _TOKEN.findall(_strip(text)):
        if token == "(":
            stack.append([])
        elif token == ")" and len(stack) > 1:
            inner = stack.pop()
            stack[-1].append(inner)
        else:
            stack[-1].append(token)
    if len(stack) > 1 or len(stack[0]) != 1 or not isinstance(stack[0][0], list):
        raise UserError("expected one expression in balanced parentheses")
    return stack[0][0]


def _typed(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The (name, type) pairs of a list such as `a b - t c`; the default type is `object`."""
    names: list[str] = []
    words = iter(words)
    for word in words:
        if word == "-":
            kind = next(words, ROOT_TYPE)
            yield from ((name, kind) for name in names)
            names = []
        else:
            names.append(word)
    yield from ((name, ROOT_TYPE) for name in names)


class _Conditions:
    def __init__(self, predicates: dict[str, tuple[str, ...]]) -> None:
        self.predicates = predicates

    def formula(self, node: list) -> Formula:
        if not isinstance(node, list):
            raise UserError(f"expected a condition in parentheses, not {node!r}")
        if not node:
            return And(())
        head, rest = node[0], node[1:]
        if head == "and":
            return And(tuple(self.formula(part) for part in rest))
        if head == "or":
            return Or(tuple(self.formula(part) for part in rest))
        if head == "not" and len(rest) == 1:
            return Not(self.formula(rest[0]))
        if head == "imply" and len(rest) == 2:
            return Or((Not(self.formula(rest[0])), self.formula(rest[1])))
        if head in ("exists", "forall") and len(rest) == 2 and isinstance(rest[0], list):
            # In ALFRED's action "examine object", the name of a type contains a comma, so no object
            # has this type. The planner's translator also treats the comma as part of the name.
            variables, part = tuple(_typed(rest[0])), self.formula(rest[1])
            if head == "exists":
                return Exists(variables, part)
            return Not(Exists(variables, Not(part)))
        return self.atom(node)

    def atom(self, node: list) -> Atom:
        if not isinstance(node, list) or not all(isinstance(word, str) for word in node):
            raise UserError(f"cannot parse the condition {_show(node)}")
        name, args = node[0], tuple(node[1:])
        arity = 2 if name == "=" else len(self.predicates.get(name, ()))
        if name != "=" and name not in self.predicates:
            raise UserError(f"unknown predicate {name!r}")
        if len(args) != arity:
            raise UserError(f"predicate {name!r} takes {arity} arguments, not {len(args)}")
        return Atom(name, args)

    def effects(self, node: list, condition: Formula | None = None) -> Iterator[Effect]:
        head = node[0] if node else "and"
        if head == "and":
            for part in node[1:]:
                yield from self.effects(part, condition)
        elif head == "when" and len(node) == 3:
            if condition is not None:
                raise UserError("nested conditional effects are not supported")
            yield from self.effects(node[2], self.formula(node[1]))
        elif head == "increase":
            return
        elif head == "not" and len(node) == 2:
            yield Effect(condition, self.atom(node[1]), negated=True)
        else:
            yield Effect(condition, self.atom(node), negated=False)


def _show(node: object) -> str:
    return f"({' '.join(map(_show, node))})" if isinstance(node, list) else str(node)


def parse_domain(text: str) -> Domain:
    """Parse a domain.

    Raises:
        UserError: the text is malformed, or uses an unsupported construct.
    """
    types: dict[str, str] = {}
    predicates: dict[str, tuple[str, ...]] = {}
    constants: tuple[tuple[str, str], ...] = ()
    actions: list[ActionSchema] = []
    for section in _nested(text)[1:]:
        if not isinstance(section, list) or not section:
            raise UserError(f"cannot read {_show(section)!r}")
        head = section[0]
        if head == ":types":
            types = dict(_typed(section[1:]))
        elif head == ":constants":
            constants = tuple(_typed(section[1:]))
        elif head == ":predicates":
            for entry in section[1:]:
                predicates[entry[0]] = tuple(kind for _, kind in _typed(entry[1:]))
        elif head == ":action":
            action = _action(section, _Conditions(predicates))
            if action.effects:
                actions.append(action)
        elif head not in ("domain", ":requirements", ":functions"):
            raise UserError(f"section {head!r} is not supported")
    return Domain(types, predicates, constants, tuple(actions))


def _action(section: list, conditions: _Conditions) -> ActionSchema:
    name = section[1]
    parts = dict(zip(section[2::2], section[3::2], strict=False))
    unknown = set(parts) - {":parameters", ":precondition", ":effect"}
    if unknown:
        raise UserError(f"action {name!r}: {sorted(map(str, unknown))} is not supported")
    try:
        return ActionSchema(
            name,
            tuple(_typed(parts.get(":parameters", []))),
            conditions.formula(parts.get(":precondition", [])),
            tuple(conditions.effects(parts.get(":effect", []))),
        )
    except UserError as error:
        raise UserError(f"action {name!r}: {error}") from None


def parse_problem(text: str, domain: Domain) -> Problem:
    """Parse a problem of `domain`.

    Raises:
        UserError: the text is malformed, or uses an unknown predicate or an undeclared object.
        LookupError, TypeError, ValueError: the text is malformed in a way that is not checked.
    """
    sections = {
        section[0]: section[1:]
        for section in _nested(text)[1:]
        if isinstance(section, list) and section and isinstance(section[0], str)
    }
    for key in (":objects", ":init", ":goal"):
        if key not in sections:
            raise UserError(f"the section {key} is missing")
    objects = dict(domain.constants) | dict(_typed(sections[":objects"]))
    conditions = _Conditions(domain.predicates)
    init: set[Atom] = set()
    numeric: list[tuple[str, ...]] = []
    for fact in sections[":init"]:
        if fact[0] == "=" and isinstance(fact[1], list):
            numeric.append((*fact[1], str(fact[2])))
        elif fact[0] != "not":
            init.add(conditions.atom(fact))
    (condition,) = sections[":goal"]
    goal = conditions.formula(condition)
    for name in [arg for atom in (*init, *atoms(goal)) for arg in atom.args]:
        if not name.startswith("?") and name not in objects:
            raise UserError(f"undeclared object {name!r}")
    for atom in init:
        kinds = zip(atom.args, domain.predicates[atom.predicate], strict=True)
        if not all(domain.is_a(objects[name], kind) for name, kind in kinds):
            raise UserError(f"{atom.predicate!r} has an object of a type unknown to the domain")
    facts = tuple((atom.predicate, *atom.args) for atom in init)
    return Problem(objects, facts, tuple(numeric), goal)
