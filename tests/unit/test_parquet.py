"""Pages of Parquet files have checksums, and every reader compares them."""

import ast

import pytest
from places import PROJECT

WRITERS = {"write_table", "to_parquet", "ParquetWriter"}
READERS = {"read_table", "read_parquet"}


def libraries_calls(tree: ast.AST):
    """(name, options that are spread) of each call that opens a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            spread = {
                ast.unparse(each.value).removeprefix("parquet.")
                for each in node.keywords
                if each.arg is None
            }
            # A ParquetWriter has got the options when it was made.
            if node.func.attr in WRITERS | READERS and ast.unparse(node.func.value) != "writer":
                yield node.func.attr, spread


@pytest.mark.parametrize(
    ("names", "options", "least"), [(WRITERS, "WRITE", 5), (READERS, "READ", 5)]
)
def test_every_call_gives_the_options(names, options, least):
    calls = [
        (path.name, name, options in spread)
        for path in sorted((PROJECT / "hgrpo").rglob("*.py"))
        for name, spread in libraries_calls(ast.parse(path.read_text(encoding="utf-8")))
        if name in names
    ]
    assert len(calls) >= least
    assert [call for call in calls if not call[-1]] == []
