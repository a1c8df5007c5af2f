"""What a Python module means to a job: a hash without the parts that cannot change a result.

One walk over the syntax tree leaves those parts out, writes the rest as text and collects the
imports. It avoids what is slow for a whole package: a second walk, and copies of the tree.
"""

import ast
import hashlib
from typing import NamedTuple

from hgrpo.envs.environment import Environment
from hgrpo.rollout.engine_kind import EngineKind

# Only people read the texts in these calls. Code reads the texts of other errors, so those count.
_SPEAK = {"print", "tqdm", "UserError", "TrainingError", "ValueError", "TypeError", "RuntimeError"}
# Base class of a plug-in -> its capabilities: all public names that the base class declares.
PLUGINS = {
    base.__name__: {name for name in vars(base) | base.__annotations__ if name[0] != "_"}
    for base in (Environment, EngineKind)
}
_EMPTY_TEXT = "Constant(value='')"


class Meaning(NamedTuple):
    """SHA-256 of a module's text, and what it imports at its top and `inside` functions.

    An import is a list of the dots before the name, the name of the module, and the names that are
    taken from it. `import x` takes none.
    """

    digest: str
    top: list[list]
    inside: list[list]


def meaning(
    source: bytes,
    filename: str = "<unknown>",
    uses: frozenset[str] = frozenset(),
    plans: frozenset[str] = frozenset(),
    holds_settings: bool = False,
) -> Meaning:
    """Read a module's source.

    The digest is that of the syntax tree as text, without positions, comments and empty fields, so
    that it is the same in all versions of Python. `ast.dump` gives other text in other versions.

    Args:
        source: the module as it stands in its file.
        filename: the name that an error shows.
        uses: the capabilities of plug-ins that count; all others are left out.
        plans: names at the top of the module that do not count.
        holds_settings: whether to leave out the defaults of the fields of classes.

    Raises:
        SyntaxError: the source is not Python.
    """
    walk = _Walk(uses, plans, holds_settings)
    text = walk.text(ast.parse(source, filename=filename))
    return Meaning(hashlib.sha256(text.encode()).hexdigest(), walk.top, walk.inside)


class _Walk:
    def __init__(self, uses: frozenset[str], plans: frozenset[str], holds_settings: bool):
        self.top: list[list] = []
        self.inside: list[list] = []
        self._uses, self._plans, self._holds_settings = uses, plans, holds_settings
        self._functions = 0
        self._cases = {
            ast.Module: self._module,
            ast.ClassDef: self._class,
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.If: self._if,
            ast.Call: self._call,
            ast.Name: _name,
            ast.Constant: _constant,
        }

    def text(self, node: ast.AST) -> str:
        """A node as text; an empty string if it does not count."""
        case = self._cases.get(node.__class__)
        return self._fields(node) if case is None else case(node)

    def _fields(self, node: ast.AST) -> str:
        shown = []
        for name in node._fields:
            value = getattr(node, name, None)
            if value is None:
                continue
            if isinstance(value, ast.AST):
                shown.append(f"{name}={self.text(value)}")
            elif not isinstance(value, list):
                shown.append(f"{name}={value!r}")
            elif items := self._items(value):
                shown.append(f"{name}=[{','.join(items)}]")
        return f"{node.__class__.__name__}({','.join(shown)})"

    def _items(self, values: list) -> list[str]:
        texts = (self.text(item) if isinstance(item, ast.AST) else repr(item) for item in values)
        return [text for text in texts if text]

    def _module(self, node: ast.Module) -> str:
        node.body = [
            item for item in node.body if not (_names(item) & self._plans or _is_docstring(item))
        ]
        return self._fields(node)

    def _class(self, node: ast.ClassDef) -> str:
        bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
        unused = set().union(*(PLUGINS.get(base, ()) for base in bases)) - self._uses
        node.body = [
            item for item in node.body if not (_names(item) & unused or _is_docstring(item))
        ]
        # `--config` gives every value of a pydantic class, so its defaults are dropped here. A
        # dataclass may use its defaults.
        if self._holds_settings and not node.decorator_list:
            for item in node.body:
                _drop_default(item)
        return self._fields(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        self._functions += 1
        node.body = [item for item in node.body if not _is_docstring(item)]
        text = self._fields(node)
        self._functions -= 1
        return text

    def _import(self, node: ast.Import) -> str:
        found = self.inside if self._functions else self.top
        found += [[0, alias.name, []] for alias in node.names]
        return self._fields(node)

    def _import_from(self, node: ast.ImportFrom) -> str:
        found = self.inside if self._functions else self.top
        found.append([node.level, node.module or "", [alias.name for alias in node.names]])
        return self._fields(node)

    def _if(self, node: ast.If) -> str:
        for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return "" if for_types else self._fields(node)

    def _call(self, node: ast.Call) -> str:
        called = _called(node)
        if called == "Field":
            node.keywords = [word for word in node.keywords if word.arg != "description"]
        return _Spoken().text(node) if called in _SPEAK else self._fields(node)


class _Spoken(_Walk):
    """Shows every string inside a call that only people read as an empty string."""

    def __init__(self):
        self._cases = {
            ast.Name: _name,
            ast.Constant: lambda node: (
                _EMPTY_TEXT if isinstance(node.value, str) else _constant(node)
            ),
            ast.JoinedStr: lambda node: _EMPTY_TEXT,
        }


def _name(node: ast.Name) -> str:
    return f"Name(id={node.id!r},ctx={node.ctx.__class__.__name__}())"


def _constant(node: ast.Constant) -> str:
    kind = "" if node.kind is None else f",kind={node.kind!r}"
    # The constant None is an empty field.
    value = "" if node.value is None else f"value={node.value!r}"
    return f"Constant({value}{kind})"


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _drop_default(item: ast.stmt) -> None:
    """Remove the default from a setting's declaration; its bounds and checks stay."""
    if not isinstance(item, ast.AnnAssign) or "ClassVar" in ast.dump(item.annotation):
        return
    if isinstance(item.value, ast.Call) and _called(item.value) == "Field":
        item.value.args = []
        item.value.keywords = [
            word for word in item.value.keywords if word.arg not in ("default", "default_factory")
        ]
    else:
        item.value = None


def _names(item: ast.stmt) -> set[str]:
    """The names that a statement defines."""
    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {item.name}
    targets = item.targets if isinstance(item, ast.Assign) else []
    if isinstance(item, ast.AnnAssign):
        targets = [item.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
