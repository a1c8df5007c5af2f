"""The version of the code that a stage really runs.

Snakemake sees a stage as a shell command and knows nothing of the modules behind it. The hash
given here covers the stage's command line module, every hgrpo module it imports (also inside
functions), and the data files of their packages. What cannot change a result is left out:
comments, docstrings and formatting.
"""

import ast
import functools
import hashlib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
STAGES = (
    "config",
    "assets",
    "expert",
    "base",
    "sft",
    "rl_round",
    "turnrd_fit",
    "evaluate",
    "merge",
    "figures",
    "report",
    "credit_agreement",
)


@functools.cache
def code_version(
    stage: str, assigner: str | tuple[str, ...] | None = None, package: Path = PACKAGE
) -> str:
    """Hash (16 hex digits) of what `python -m hgrpo.cli.<stage>` runs.

    Args:
        stage: name of a command line.
        assigner: kind of the credit assigner it loads by name, or kinds, for a stage that does.
        package: folder of the package.
    """
    digest = hashlib.sha256()
    for name, content in sorted(contents(stage, assigner, package).items()):
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def contents(
    stage: str, assigner: str | tuple[str, ...] | None = None, package: Path = PACKAGE
) -> dict[str, bytes]:
    """Module name or data file (relative to the package's parent) -> what of it counts."""
    modules = imported_modules(f"{package.name}.cli.{stage}", package)
    for kind in (assigner,) if isinstance(assigner, str) else assigner or ():
        modules |= imported_modules(f"{package.name}.credit.{kind}", package)
    found = {name: _normalised(_source(name, package)) for name in modules}
    for name in modules:
        source = _source(name, package)
        if source.name == "__init__.py":
            for path in _data_files(source.parent):
                found[str(path.relative_to(package.parent))] = path.read_bytes()
    return found


@functools.cache
def imported_modules(module: str, package: Path = PACKAGE, lazy: bool = True) -> frozenset[str]:
    """Modules of the package that importing `module` runs, itself and its parents included.

    Args:
        module: dotted name, such as "hgrpo.cli.sft".
        package: folder of the package.
        lazy: follow imports written inside functions too.

    Raises:
        FileNotFoundError: the module does not exist.
    """
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if "." in name:
            waiting.append(name.rpartition(".")[0])
        waiting += _imports(name, package, lazy)
    return frozenset(found)


def _source(module: str, package: Path) -> Path:
    folder = package.parent.joinpath(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


@functools.cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


@functools.cache
def _imports(module: str, package: Path, lazy: bool) -> list[str]:
    source = _source(module, package)
    names = []
    for node in _statements(_parse(source), lazy):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")
                kept = len(parents) - node.level + (source.name == "__init__.py")
                base = ".".join(parents[:kept] + ([base] if base else []))
            names.append(base)
            names += [f"{base}.{alias.name}" for alias in node.names]
    inside = [name for name in names if name.split(".")[0] == package.name]
    return [name for name in inside if _source(name, package).is_file()]


def _statements(tree: ast.AST, lazy: bool):
    """Every node; without `lazy`, none of those in functions or under `if TYPE_CHECKING`."""
    if lazy:
        yield from ast.walk(tree)
        return
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _statements(child, lazy)


def _data_files(folder: Path):
    """Files of a package that are not Python, those of its subpackages left out."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name != "__pycache__" and not (path / "__init__.py").exists():
            yield from _data_files(path)
        elif path.is_file() and path.suffix not in {".py", ".pyc"}:
            yield path


@functools.cache
def _normalised(path: Path) -> bytes:
    return _meaning(_parse(path)).encode()


def _meaning(node: object) -> str:
    """A syntax tree as text, without docstrings, positions and empty fields.

    `ast.dump` would do, but its text differs between Python versions; results outlive those.
    """
    if isinstance(node, list):
        return "[" + ",".join(_meaning(item) for item in node) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = []
    for name, value in ast.iter_fields(node):
        if name == "body" and isinstance(value, list):
            value = [item for item in value if not _is_docstring(item)]
        if value is None or value == []:
            continue
        fields.append(f"{name}={_meaning(value)}")
    return f"{type(node).__name__}({','.join(fields)})"


def _is_docstring(node: object) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
