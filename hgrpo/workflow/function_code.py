"""The hash of a function with all that it uses, for modules that hold several functions of choice.

`hgrpo.workflow.code_version` hashes whole modules. A package of rules holds several rules in one
module, and a run names one of them. Here only those definitions count that the named function
reaches, also through other modules of its package.
"""

import ast
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from hgrpo.workflow.code_meaning import meaning
from hgrpo.workflow.code_version import PACKAGE


class Reached(NamedTuple):
    """`parts` maps each definition that counts, "module:name", to its hash.

    `modules` are those outside the functions' package that the parts import.
    """

    parts: dict[str, str]
    modules: frozenset[str]


def reach(functions: Iterable[str], package: Path = PACKAGE) -> Reached:
    """All that functions such as "hgrpo.sandbox.rl.rules.dg.dg" reach.

    Raises:
        LookupError: a module does not define a function.
    """
    parts: dict[str, str] = {}
    modules: set[str] = set()
    waiting = [tuple(function.rpartition(".")[::2]) for function in functions]
    while waiting:
        module, name = waiting.pop()
        if f"{module}:{name}" in parts:
            continue
        defined = _definitions(module, package)
        if name not in defined:
            raise LookupError(f"{module} defines no {name}")
        statement = defined[name]
        if isinstance(statement, ast.ImportFrom):
            origin = next(a.name for a in statement.names if name in (a.asname, a.name))
            inside = statement.module.startswith(f"{module.rpartition('.')[0]}.")
            if inside:
                waiting.append((statement.module, origin))
            elif statement.module.split(".")[0] == package.name:
                modules |= {statement.module} | _submodule(statement.module, origin, package)
            continue
        source = ast.unparse(statement).encode()
        parts[f"{module}:{name}"] = meaning(source, module).digest
        used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        waiting += [(module, each) for each in used & defined.keys() if each != name]
    return Reached(parts, frozenset(modules))


def _submodule(module: str, name: str, package: Path) -> set[str]:
    """The module `name` of a package, if it is one."""
    folder = package.parent.joinpath(*module.split("."), name)
    return {f"{module}.{name}"} if folder.with_suffix(".py").is_file() else set()


@functools.cache
def _definitions(module: str, package: Path) -> dict[str, ast.stmt]:
    """The statements at the top of a module, by the names that they define."""
    path = package.parent.joinpath(*module.split(".")).with_suffix(".py")
    found: dict[str, ast.stmt] = {}
    for statement in ast.parse(path.read_bytes(), filename=str(path)).body:
        for name in _names(statement):
            found[name] = statement
    return found


def _names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.ImportFrom):
        return [each.asname or each.name for each in statement.names]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    named = [node for target in targets for node in ast.walk(target)]
    return [node.id for node in named if isinstance(node, ast.Name)]
