"""The hash of the code that a job runs: that of its source files, without comments and docstrings.

Snakemake sees only a stage's shell command, so it cannot notice an edit in a Python module. This
hash covers the modules of the stage, environment, engine, credit assigners and update rule of the
job, all that they import from this checkout, also inside functions, and the data files beside them.
Plug-ins are imported by name, so those of other jobs do not count.

Three things are left out besides: what a stage's module holds for planning, whose effect reaches
jobs as params and inputs; the capabilities of a plug-in that neither the stage nor the plug-in
calls; and the defaults and descriptions of settings, since `--config` gives a job every value.
"""

import ast
import functools
import hashlib
from collections.abc import Collection, Iterable, Mapping
from importlib.util import resolve_name
from pathlib import Path

from hgrpo.credit import kinds as credit_kinds
from hgrpo.envs.environment import Environment
from hgrpo.errors import UserError
from hgrpo.formulas import kinds as rule_kinds
from hgrpo.rollout.engine_kind import EngineKind
from hgrpo.stages.order import load

PACKAGE = Path(__file__).resolve().parent.parent
# Names in a stage's module, and modules, that only planning uses or that record where a job ran.
_PLANS = {"from_study", "from_whole_study", "inputs", "outputs", "Paths", "reusable", "needed"}
_PLANS |= {"RESOURCES", "ENV_USES", "ENGINE_USES", "LOADS_CREDIT", "LOADS_RULE"}
_SKIPPED = {f"hgrpo.stages.{name}" for name in ("comparison", "files", "order", "paths")}
_SKIPPED |= {"hgrpo.provenance", "hgrpo.envs.user_files"}
# Base class of a plug-in -> its capabilities: all public names that it declares.
_PLUG_INS = {
    base.__name__: {name for name in vars(base) | base.__annotations__ if name[0] != "_"}
    for base in (Environment, EngineKind)
}
_CAPABILITIES = set().union(*_PLUG_INS.values())
# Ends of the names of pydantic models' base classes.
_MODELS = ("Strict", "Settings", "Config")
_IMPORTS = {ast.Import, ast.ImportFrom}
_BLOCKS = {ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef}
# Positions, and what follows from where a node stands.
_NOT_WRITTEN = {"lineno", "col_offset", "end_lineno", "end_col_offset", "ctx"}


def code_of(stage: str, settings: Mapping) -> str:
    """Hash (16 hex digits) of the code of a job.

    Args:
        stage: one of `hgrpo.stages.order.STAGES`.
        settings: the job's --config. Its sections `env` and `engine` name plug-ins, as do its own
            and its methods' `credit` if the stage loads assigners, and `objective` if it trains.
    """
    return _digest(str(modules_of(stage, settings)))


def modules_of(stage: str, settings: Mapping) -> dict[str, str]:
    """The modules and data files that `code_of` covers, each with its hash, in order."""
    return dict(sorted(contents(*plug_ins(stage, settings)).items()))


@functools.cache
def package_digest(package: Path = PACKAGE) -> str:
    """Hash (16 hex digits) of every file of the package as it is, with comments and all.

    Modules and packages beside it count too. It takes a fraction of the time of `code_of`. If it
    has not changed, no hash of code has.
    """
    root = package.parent
    beside = [*root.glob("*.py"), *(each.parent for each in root.glob("*/__init__.py"))]
    paths = [path for each in {package, *beside} for path in [each, *each.rglob("*")]]
    files = [p for p in sorted({*paths}) if p.is_file() and p.parent.name != "__pycache__"]
    return _digest(str([(f"{path.relative_to(root)}", _digest(path)) for path in files]))


def clear_caches() -> None:
    """Read all files again for the next hash."""
    for function in (package_digest, _read, _path, _data_files):
        function.cache_clear()


def plug_ins(stage: str, settings: Mapping) -> tuple[list[str], frozenset[str]]:
    """The modules that a job starts from, and the capabilities of plug-ins that it uses."""
    module, roots = load(stage), [f"hgrpo.stages.{stage}"]
    of_env, of_engine = getattr(module, "ENV_USES", ()), getattr(module, "ENGINE_USES", ())
    method = settings.get("method") or {}
    if hasattr(module, "LOADS_CREDIT"):
        sections = [settings, method, *settings.get("methods", ())]
        kinds = sorted({of["credit"]["kind"] for of in sections if of.get("credit")})
        roots += map(credit_kinds.module_name, kinds)
        of_env += tuple(use for kind in kinds for use in credit_kinds.settings_of(kind).uses)
    if hasattr(module, "LOADS_RULE") and method.get("objective"):
        roots.append(rule_kinds.module_name(method["objective"]["rule"]))
    if of_env and settings.get("env"):
        roots.append(f"hgrpo.envs.{settings['env']['name']}")
    if of_engine and settings.get("engine"):
        roots.append(f"hgrpo.rollout.{settings['engine']['kind']}")
    return roots, frozenset({*of_env, *of_engine, "Settings"})


def contents(
    roots: Iterable[str],
    uses: frozenset[str] = frozenset(),
    package: Path = PACKAGE,
    skip: Collection[str] = (),
) -> dict[str, str]:
    """Map each module and data file that a job runs or reads to its hash (16 hex digits).

    Args:
        roots: what a job starts from: modules, or classes and functions such as
            "hgrpo.formulas.dg:DG".
            Of a function's module only what the function uses counts, also of other modules in
            the same package.
        uses: capabilities of plug-ins that count; all others are left out.
        package: folder of the package. Paths of data files are relative to its parent.
        skip: dotted names of modules to leave out, with what only they import.

    Raises:
        FileNotFoundError: a module of `roots` does not exist.
        UserError: a module is not Python.
    """
    found: dict[str, str] = {}
    called: set[str] = set()
    waiting = [*(roots := set(roots))]
    below = tuple(f"{root}." for root in roots)
    while waiting:
        name = waiting.pop()
        module = name.partition(":")[0]
        if name in found or module in _SKIPPED or module in skip:
            continue
        path = _path(module, package)
        of_root = uses if name in roots else frozenset()
        found[name], imports, attributes = _read(name, of_root, package)
        waiting += imports
        # A game may call its own capabilities in play.
        if module in roots or module.startswith(below):
            called |= attributes
        for data in _data_files(path.parent) if path.stem == "__init__" else ():
            found[f"{data.relative_to(package.parent)}"] = _digest(data)
    if more := (called & _CAPABILITIES) - uses:
        return contents(roots, uses | more, package, skip)
    return found


@functools.cache
def _read(
    name: str, uses: frozenset[str], package: Path
) -> tuple[str, frozenset[str], frozenset[str]]:
    """The hash of a module or of a function in it, what that imports, and its attributes."""
    module, _, function = name.partition(":")
    path, parent = _path(module, package), module.rpartition(".")[0]
    within, imports = module if path.stem == "__init__" else parent, {parent}
    text: list[str] = []
    attributes: set[str] = set()

    def write(field: str, value: object) -> None:
        """Append syntax to `text`; `ast.dump` writes it differently in other versions of Python."""
        kind = value.__class__
        if kind is list:
            for each in value:
                write(field, each)
        elif isinstance(value, ast.AST):
            if kind in _IMPORTS:
                imports.update(_imported(value, within, parent if function else None))
            elif kind in _BLOCKS:
                value.body = _counted(value, uses, module)
            elif kind is ast.Attribute:
                attributes.add(value.attr)
            text.append(f"{field}={kind.__name__}(")
            for name, part in vars(value).items():
                if part is not None and name not in _NOT_WRITTEN:
                    write(name, part)
            text.append(")")
        else:
            text.append(f"{field}={value!r}")

    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise UserError(f"{path}, line {error.lineno}: {error.msg}") from None
    if function:
        tree.body = _reached(tree.body, {function})
    write("", tree)
    if package.parent.name == "site-packages":
        imports = {each for each in imports if each.partition(".")[0] == package.name}
    files = [each for each in imports if _path(each.partition(":")[0], package).is_file()]
    return _digest("".join(text)), frozenset(files), frozenset(attributes)


def _imported(node: ast.Import | ast.ImportFrom, within: str, beside: str | None) -> list[str]:
    """What may be a module, or a function of a module in the package `beside`."""
    names = [each.name for each in node.names]
    if isinstance(node, ast.Import):
        return names
    base = resolve_name("." * node.level + (node.module or ""), within)
    in_part = base.rpartition(".")[0] == beside
    whole = [f"{base}:{name}" for name in names] if in_part else [base]
    return whole + [f"{base}.{name}" for name in names]


def _counted(block: ast.AST, uses: frozenset[str], module: str) -> list[ast.stmt]:
    """The statements of a module, class or function that can change a result."""
    body = [each for each in block.body if not _is_unread(each)]
    if isinstance(block, ast.Module) and module.startswith("hgrpo.stages."):
        return [each for each in body if not _names(each) & _PLANS]
    if not isinstance(block, ast.ClassDef):
        return body
    bases = [getattr(base, "id", "") for base in block.bases]
    unused = set().union(*(_PLUG_INS.get(base, ()) for base in bases)) - uses
    body = [each for each in body if not _names(each) & unused]
    # `--config` gives a job the fields of a pydantic model, not constants of other classes.
    is_model = module.endswith("settings") and any(base.endswith(_MODELS) for base in bases)
    for each in body if is_model else ():
        field = isinstance(each, ast.AnnAssign) and "ClassVar" not in ast.dump(each.annotation)
        if field and not each.target.id.startswith("_"):
            each.value = None
    return body


def _is_unread(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring, or imports for type checking only."""
    if isinstance(statement, ast.If) and not statement.orelse:
        return getattr(statement.test, "id", "") == "TYPE_CHECKING"
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _reached(body: list[ast.stmt], names: set[str]) -> list[ast.stmt]:
    """The statements that define `names` or what these use, and those that define nothing."""
    kept = [each for each in body if _names(each) & names or not _names(each)]
    nodes = [node for each in kept for node in ast.walk(each)]
    used = names | {node.id for node in nodes if isinstance(node, ast.Name)}
    if used > names:
        return _reached(body, used)
    for each in kept:
        if isinstance(each, ast.ImportFrom):
            each.names = [alias for alias in each.names if (alias.asname or alias.name) in names]
    return kept


def _names(statement: ast.stmt) -> set[str]:
    """The names that a definition, an assignment or an import gives."""
    if isinstance(statement, ast.ImportFrom):
        return {each.asname or each.name for each in statement.names}
    if isinstance(statement, ast.For):
        return set()
    targets = getattr(statement, "targets", [getattr(statement, "target", statement)])
    return {getattr(each, "name", getattr(each, "id", "")) for each in targets} - {""}


def _digest(content: str | Path) -> str:
    data = content.encode() if isinstance(content, str) else content.read_bytes()
    return hashlib.sha256(data).hexdigest()[:16]


@functools.cache
def _path(module: str, package: Path) -> Path:
    folder = package.parent.joinpath(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


@functools.cache
def _data_files(folder: Path) -> list[Path]:
    """Files of a package except Python files, subpackages, hidden files and editors' backups."""
    paths = [path for path in sorted(folder.iterdir()) if path.name.strip("~.") == path.name]
    packages = [path for path in paths if (path / "__init__.py").exists()]
    inner = [path for path in paths if path.is_dir() and path not in packages]
    below = [path for path in inner if path.name != "__pycache__"]
    files = [path for path in paths if path.is_file() and path.suffix not in {".py", ".pyc"}]
    return files + [path for each in below for path in _data_files(each)]
