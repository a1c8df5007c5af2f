"""No arrow runs back up: a room imports only rooms below it, also inside functions."""

import ast
from pathlib import Path

import hgrpo

PACKAGE = Path(hgrpo.__file__).parent
# From the ground up; docs/architecture.md draws them.
ROOMS = (
    *("errors", "zip_errors", "streams", "atomic", "archive", "parquet", "progress"),
    *("config", "command"),
    "standardise",
    "formulas",
    *("agent", "envs", "base_model", "policy", "trajectories", "rollout", "credit"),
    *("learning", "evaluation", "report", "results", "provenance"),
    "sandbox",
    *("stages", "study", "store", "workflow", "cli"),
)


def room(module: str) -> str:
    return module.split(".")[1]


def imported(tree: ast.AST):
    """Modules of the package that a file imports, but for those that only type checking needs."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hgrpo":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.startswith("hgrpo."))
        yield from imported(node)


def test_every_import_goes_down_or_stays_in_its_room():
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts == ("__init__",):
            continue
        for module in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if ROOMS.index(room(module)) > ROOMS.index(parts[0]):
                wrong.append(f"{'.'.join(parts)} imports {module}")
    assert wrong == []
