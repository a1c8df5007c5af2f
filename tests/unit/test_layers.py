"""No arrow runs back up: a room imports only rooms below it, also inside functions."""

import ast
from pathlib import Path

import hgrpo

PACKAGE = Path(hgrpo.__file__).parent
# From the ground up; docs/architecture.md draws them.
ROOMS = (
    *("errors", "strict", "games"),
    *("atomic", "archive", "parquet", "progress", "config", "command"),
    "standardise",
    "formulas",
    *("agent", "base_model", "policy", "trajectories", "rollout", "credit"),
    *("learning", "evaluation", "report", "results", "provenance"),
    "sandbox",
    *("stages", "study", "store", "workflow", "cli"),
)
# The two modules of `config` below the games: people use those without the pipeline.
STRICT = ("hgrpo.config.strict", "hgrpo.config.bounds")


def room(module: str) -> str:
    return "strict" if module.startswith(STRICT) else module.split(".")[1]


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


def imports():
    """Pairs of a module of the package and what it imports of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(("hgrpo", *path.relative_to(PACKAGE).with_suffix("").parts))
        if name != "hgrpo.__init__":
            for module in imported(ast.parse(path.read_text(encoding="utf-8"))):
                yield name, module


def test_every_import_goes_down_or_stays_in_its_room():
    wrong = [
        f"{name} imports {module}"
        for name, module in imports()
        if ROOMS.index(room(module)) > ROOMS.index(room(name))
    ]
    assert wrong == []


def test_games_import_only_errors_and_strict_config_and_the_pipeline_no_sandbox():
    pairs = {(room(name), room(module)) for name, module in imports()}
    assert {to for start, to in pairs if start == "games"} <= {"games", "errors", "strict"}
    users = {start for start, to in pairs if to == "sandbox"} - {"sandbox"}
    assert not users & {"stages", "study", "report", "evaluation", "learning", "store"}
