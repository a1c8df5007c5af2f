"""Parses the text grammar of a game file into plain data, without executing any code in it.

A grammar contains blocks of production rules and, for each action, a command template and a
feedback rule:

    grammar :: \"\"\"{ "task": [{"rhs": "Your task is to: ..."}] }\"\"\";
    action OpenObject { template :: "open {r}"; feedback :: "#OpenObject.feedback#"; }

The right-hand side of a rule mixes text, `#rule#`, `{expression}`, `{expression | query}` and
`[{expression | query}]`. The official interpreter evaluates expressions with Python's eval. This
parser accepts only attributes of entities, string literals, `+` and `or`, which suffice for all
published games.
"""

import json
import re
import textwrap
from dataclasses import dataclass, field

from hgrpo.errors import UserError


@dataclass(frozen=True)
class Attribute:
    """`variable.attribute`; if only a variable is given, `attribute` is "name"."""

    variable: str
    attribute: str


# An expression such as `a + b or c` has alternatives, here [a, b] and [c]. The first one whose text
# is not empty is used.
Expression = tuple[tuple[Attribute | str, ...], ...]


@dataclass(frozen=True)
class RuleCall:
    """`#name#`; the name may contain parentheses."""

    name: str


@dataclass(frozen=True)
class Literal:
    """One conjunct of a query: a predicate with (name, type) placeholders as arguments."""

    predicate: str
    placeholders: tuple[tuple[str, str], ...]


Query = tuple[Literal, ...]


@dataclass(frozen=True)
class Each:
    """Renders `expression` once per assignment that satisfies `query`, or once if `query` is empty.

    If `listed`, the texts are joined by the rules `list_separator` and `list_last_separator`.
    """

    expression: Expression | RuleCall
    query: Query
    listed: bool = False


Symbol = str | RuleCall | Each


@dataclass(frozen=True)
class Alternative:
    """A right-hand side, which applies if `condition` is empty or can be satisfied."""

    condition: Query
    symbols: tuple[Symbol, ...]


@dataclass(frozen=True)
class ActionText:
    """The command template and the feedback of an action."""

    template: tuple[Symbol, ...]
    feedback: tuple[Symbol, ...]


@dataclass
class Grammar:
    """The rules of a game's grammar and the texts of its actions.

    `rules` maps each rule to its alternatives, in order. `actions` maps each action's lower-case
    name to the action's texts.
    """

    rules: dict[str, list[Alternative]] = field(default_factory=dict)
    actions: dict[str, ActionText] = field(default_factory=dict)


_BLOCK = re.compile(
    r'\s*(?:#[^\n]*\n\s*)*(?:grammar\s*::\s*"""(?P<rules>.*?)"""\s*;?|action\s+(?P<name>[\w/-]+)\s*\{)',
    re.DOTALL,
)
_FIELD = re.compile(
    r'\s*(?:#[^\n]*\n\s*)*(?:(?P<key>template|feedback)\s*::\s*"(?P<text>[^"]*)"'
    r'|(?P<block>pddl|grammar)\s*::\s*"""(?P<body>.*?)""")\s*;',
    re.DOTALL,
)
_END = re.compile(r"\s*(?:#[^\n]*\n\s*)*\}")
_BLANK = re.compile(r"(?:\s|#[^\n]*(?:\n|$))*")


def parse_grammar(text: str) -> Grammar:
    """Parse the grammar of a game file.

    Raises:
        UserError: the text is malformed, or contains an unsupported expression.
    """
    grammar = Grammar()
    at = 0
    while _BLANK.fullmatch(text, at) is None:
        block = _BLOCK.match(text, at)
        if block is None:
            raise UserError(f"cannot parse the grammar at {_excerpt(text, at)!r}")
        at = block.end()
        if block["name"] is None:
            _add_rules(grammar, block["rules"])
        else:
            at = _action(grammar, block["name"], text, at)
    return grammar


def _action(grammar: Grammar, name: str, text: str, at: int) -> int:
    texts = {}
    while (part := _FIELD.match(text, at)) is not None:
        at = part.end()
        texts[part["key"] or part["block"]] = part["text"] or part["body"] or ""
    end = _END.match(text, at)
    if end is None:
        raise UserError(f"action {name}: cannot parse {_excerpt(text, at)!r}")
    if not {"template", "feedback"} <= texts.keys():
        raise UserError(f"action {name}: template and feedback are required")
    grammar.actions[name.lower()] = ActionText(
        parse_symbols(texts["template"]), parse_symbols(texts["feedback"])
    )
    if "grammar" in texts:
        lines = textwrap.dedent(texts["grammar"]).split("\n")
        _add_rules(grammar, "\n".join(li for li in lines if not li.lstrip().startswith("#")))
    return end.end()


def _add_rules(grammar: Grammar, text: str) -> None:
    name = ""
    try:
        for name, alternatives in json.loads(text).items():
            grammar.rules[name] = [
                Alternative(parse_query(entry.get("condition", "")), parse_symbols(entry["rhs"]))
                for entry in alternatives
            ]
    except UserError as error:
        raise UserError(f"rule {name!r}: {error}") from None
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"malformed grammar rules ({error}): {_excerpt(text, 0)!r}") from None


_TAG = re.compile(r"#([\w()/!<>\-\s,.]+)#")
_EXPRESSION = re.compile(
    r"\{[\t]*(?:#(?P<rule>[^#{}]*)#|(?P<code>[^{}#|]*))(?:\s*\|(?P<query>[^{}]*))?\}"
)
_LISTING = re.compile(rf"\[{_EXPRESSION.pattern}\]")
_TEXT = re.compile(r'([^;|"<>\[\]#{}]+)|"([^;|"<>\[\]#{}]*)"')
_LEADING = re.compile(r"(?://.*\n|\s*\n)*(?://.*|\s*)")


def parse_symbols(text: str) -> tuple[Symbol, ...]:
    """Parse a right-hand side.

    Like the official parser, this one stops at the first character that cannot start a symbol (`;`
    or an unbalanced `}`). It skips white space and `//` lines before the first symbol, and tabs
    before any symbol.

    Raises:
        UserError: a `{` or `[` does not start a supported expression.
    """
    symbols: list[Symbol] = []
    at = _LEADING.match(text).end()
    while at < len(text):
        if text[at] == "\t":
            at += 1
            continue
        if (match := _TAG.match(text, at)) is not None:
            symbols.append(RuleCall(match[1]))
        elif text[at] in "{[":
            listed = text[at] == "["
            match = (_LISTING if listed else _EXPRESSION).match(text, at)
            if match is None:
                raise UserError(f"unsupported expression {_excerpt(text, at)!r}")
            rule = match["rule"]
            inner = _expression(match["code"]) if rule is None else RuleCall(rule)
            symbols.append(Each(inner, parse_query(match["query"] or ""), listed))
        elif (match := _TEXT.match(text, at)) is not None:
            symbols.append(match[1] or match[2])
        else:
            break
        at = match.end()
    return tuple(symbols)


_NAME = re.compile(r"\s*([A-Za-z_]\w*)(?:\.(name|indefinite|definite|id))?\s*")
_STRING = re.compile(r"\s*(?:'([^'\\]*)'|\"([^\"\\]*)\")\s*")


def _expression(code: str) -> Expression:
    alternatives = []
    for alternative in re.split(r"\bor\b", code):
        parts: list[Attribute | str] = []
        for term in alternative.split("+"):
            # Quoted text that contains a plus or the word "or" is split here, and then rejected.
            if (name := _NAME.fullmatch(term)) is not None:
                parts.append(Attribute(name[1], name[2] or "name"))
            elif (string := _STRING.fullmatch(term)) is not None:
                parts.append(string[1] or string[2] or "")
            else:
                raise UserError(f"unsupported expression {{{code}}}")
        alternatives.append(tuple(parts))
    return tuple(alternatives)


_LITERAL = re.compile(r"\s*([A-Za-z_][\w@-]*)\s*\(\s*([^()]*)\)\s*")
_PLACEHOLDER = re.compile(r"\s*([A-Za-z_]\w*'*)\s*(?::\s*([A-Za-z_]\w*)\s*)?")


def parse_query(text: str) -> Query:
    """Parse `p(x: t, y: t) & not_q(x: t)`; an empty text is the empty query.

    Raises:
        UserError: the text does not have this form.
    """
    if not text.strip():
        return ()
    literals = []
    for part in text.split("&"):
        match = _LITERAL.fullmatch(part)
        if match is None:
            raise UserError(f"unsupported condition {text!r}")
        placeholders = []
        for argument in match[2].split(",") if match[2].strip() else ():
            parsed = _PLACEHOLDER.fullmatch(argument)
            if parsed is None:
                raise UserError(f"unsupported condition {text!r}")
            placeholders.append((parsed[1], parsed[2] or parsed[1].rstrip("'")))
        literals.append(Literal(match[1], tuple(placeholders)))
    return tuple(literals)


def _excerpt(text: str, at: int) -> str:
    return " ".join(text[at : at + 60].split())
