"""Check that every text file is read and written with an explicit encoding.

Without an explicit encoding, Python uses the encoding of the locale. Ruff's rule PLW1514 recognises
a path only in the expression that constructs it, so it misses nearly all calls of `read_text` and
`write_text`.

Example:
  python workflow_scripts/lint_encodings.py
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[1]
FOLDERS = ("hgrpo", "workflow_scripts", "benchmarks", "tests")
_TEXT_MODE = re.compile("[rwaxt+]+")


def main() -> int:
    """Print all calls without an encoding; return 1 if there are any."""
    files = [file for folder in FOLDERS for file in sorted((PROJECT / folder).rglob("*.py"))]
    lines = [
        f"{file.relative_to(PROJECT)}:{line}: {name}: no explicit encoding"
        for file in files
        for line, name in unnamed(file.read_text(encoding="utf-8"))
    ]
    print("\n".join(lines) or f"{len(files)} files specify the encoding of all text files")
    return int(bool(lines))


def unnamed(code: str) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each call in `code` that opens text without an encoding."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            keywords = {keyword.arg for keyword in node.keywords}
            if "encoding" not in keywords and _is_text(node.func.attr, node.args, keywords):
                yield node.lineno, node.func.attr


def _is_text(name: str, args: list[ast.expr], keywords: set[str | None]) -> bool:
    if name == "open":
        # The first argument of `Path.open` is the mode. The first argument of other `open` methods,
        # such as those of zip files, is a file name.
        mode = args[0].value if args and isinstance(args[0], ast.Constant) else None
        return not (args or keywords) or bool(_TEXT_MODE.fullmatch(str(mode)))
    if name in ("run", "Popen", "check_output"):
        return "text" in keywords
    return name in ("read_text", "write_text")


if __name__ == "__main__":
    sys.exit(main())
