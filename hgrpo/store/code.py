"""Hash the code of a job: its modules and their imports, without comments and docstrings.

Snakemake only compares a stage's shell command, so it cannot detect an edit in a Python module. The
hash covers the modules of the job's stage, environment, engine, credit assigners and update rule.
It also covers all modules of this checkout that these modules import, at the top level or inside
functions, and the data files in their packages. A game's `assets.py` and `expert.py` are included
only for stages that generate tasks or run the expert.
"""

import ast
import functools
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from importlib.util import resolve_name
from pathlib import Path

from hgrpo.credit import kinds as credit_kinds
from hgrpo.errors import UserError
from hgrpo.formulas import kinds as rule_kinds
from hgrpo.stages.order import load

PACKAGE = Path(__file__).resolve().parent.parent
# Modules that are not hashed. A listed module either affects jobs only through their settings and
# inputs, only records where a job ran, or is not used by any job.
_SKIPPED = {f"hgrpo.stages.{name}" for name in ("comparison", "files", "order", "paths")}
_SKIPPED |= {"hgrpo.provenance", "hgrpo.games.gym"}
# Modules of a game that are not needed to play it. Stages that use such a module list it in USES.
_PARTS = ("assets", "expert")
_PART = re.compile(rf"hgrpo\.games\.\w+\.({'|'.join(_PARTS)})")
_POSITIONS = ("lineno", "col_offset", "end_lineno", "end_col_offset", "ctx", "type_ignores")


def roots(stage: str, settings: Mapping) -> list[str]:
    """The modules with which a job starts: its stage, and the plug-ins named in its settings."""
    module = load(stage)
    method = settings.get("method") or {}
    sections = [settings, method, *settings.get("methods", ())] if "credit" in module.USES else []
    kinds = [of["credit"]["kind"] for of in sections if of.get("credit")]
    named = [credit_kinds.module_name(kind) for kind in kinds]
    if "rule" in module.USES and method.get("objective"):
        named.append(rule_kinds.module_name(method["objective"]["rule"]))
    if "env" in module.USES and settings.get("env"):
        game = f"hgrpo.games.{settings['env']['name']}"
        parts = [f"{game}.{part}" for part in _PARTS if part in module.USES]
        named += [game, *(part for part in parts if _path(part, PACKAGE).is_file())]
    if "engine" in module.USES and settings.get("engine"):
        named.append(f"hgrpo.rollout.{settings['engine']['kind']}")
    return [f"hgrpo.stages.{stage}", *sorted(set(named))]


def code_hash(modules: Iterable[str], skip: Collection[str] = ()) -> str:
    """Hash modules, all modules that they import, and their data files, to 16 hex digits.

    Modules in `skip`, and modules that only these modules import, are excluded.

    Raises:
        UserError: a module is not valid Python.
        FileNotFoundError: a module of `modules` does not exist.
    """
    return digest_of(closure(modules, skip=skip))


def digest_of(hashes: Mapping[str, str]) -> str:
    """Hash the result of `closure`."""
    return _digest(json.dumps(sorted(hashes.items())).encode())


def closure(
    modules: Iterable[str], package: Path = PACKAGE, skip: Collection[str] = ()
) -> dict[str, str]:
    """Hash `modules`, all modules that they import, and their data files; return hashes by name."""
    hashes: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in hashes or name in _SKIPPED or name in skip:
            continue
        path = _path(name, package)
        hashes[name], imports = _read(name, path, package)
        waiting += [each for each in imports if not _PART.fullmatch(each)]
        for data in _data_files(path.parent) if path.stem == "__init__" else ():
            hashes[str(data.relative_to(package.parent))] = _digest(data.read_bytes())
    return hashes


def _read(name: str, path: Path, package: Path) -> tuple[str, list[str]]:
    state = path.stat()
    return _parsed(name, path, package, state.st_size, state.st_mtime_ns)


@functools.cache
def _parsed(name: str, path: Path, package: Path, *state: int) -> tuple[str, list[str]]:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise UserError(f"{path}, line {error.lineno}: {error.msg}") from None
    within = name if path.stem == "__init__" else name.rpartition(".")[0]
    # Importing a module also runs the __init__.py of its parent packages.
    names = {name.rpartition(".")[0]} - {""}
    text: list[str] = []
    _write(tree, text, names, within)
    installed = package.parent.name == "site-packages"
    imports = sorted(
        each
        for each in names
        if _path(each, package).is_file() and (not installed or each.split(".")[0] == package.name)
    )
    return _digest("".join(text).encode()), imports


def _write(node: object, text: list[str], imports: set[str], within: str) -> None:
    """Append a syntax tree to `text`, in a format that is the same for all versions of Python."""
    if isinstance(node, list):
        for each in node:
            if not _is_unread(each):
                _write(each, text, imports, within)
        text.append(";")
    elif isinstance(node, ast.AST):
        if isinstance(node, ast.Import):
            imports.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), within)
            imports.update([base, *(f"{base}.{each.name}" for each in node.names)])
        text.append(f"{type(node).__name__}(")
        for field, part in vars(node).items():
            if part is not None and field not in _POSITIONS:
                text.append(f"{field}=")
                _write(part, text, imports, within)
        text.append(")")
    else:
        text.append(f"{node!r},")


def _is_unread(statement: object) -> bool:
    """Whether a node is a docstring, a field's description, or a block `if TYPE_CHECKING`."""
    if isinstance(statement, ast.keyword) and statement.arg == "description":
        return True
    if isinstance(statement, ast.If) and not statement.orelse:
        return getattr(statement.test, "id", "") == "TYPE_CHECKING"
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@functools.cache
def _path(module: str, package: Path) -> Path:
    folder = package.parent.joinpath(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def _data_files(folder: Path) -> list[Path]:
    """Data files of a package, without Python files, subpackages, hidden files or backups."""
    files, inner = _listing(folder, folder.stat().st_mtime_ns)
    return files + [path for each in inner for path in _data_files(each)]


@functools.cache
def _listing(folder: Path, changed: int) -> tuple[list[Path], list[Path]]:
    """Data files and data folders in a folder, cached by the folder's modification time in ns."""
    paths = [path for path in sorted(folder.iterdir()) if path.name.strip("~.") == path.name]
    files = [path for path in paths if path.is_file() and path.suffix not in {".py", ".pyc"}]
    inner = [path for path in paths if path.is_dir() and path.name != "__pycache__"]
    return files, [path for path in inner if not (path / "__init__.py").exists()]
