"""Check the Python code in README.md and docs/*.md with ruff, using the package's ruff rules."""

import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def main() -> int:
    """Print the findings of ruff; return 1 if there are any."""
    failed = 0
    for page in [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]:
        for number, code in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1):
            name = f"hgrpo/{page.stem.lower()}_{number}.py"
            for command in (["check", "--ignore", "D100"], ["format", "--check"]):
                words = [sys.executable, "-m", "ruff", *command, "--stdin-filename", name, "-"]
                done = subprocess.run(words, input=code, encoding="utf-8", cwd=PROJECT, check=False)
                failed |= done.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
