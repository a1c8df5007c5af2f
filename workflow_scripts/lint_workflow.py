"""Run `snakemake --lint` and fail on every finding that is not in `EXCEPTIONS`.

Example:
  python workflow_scripts/lint_workflow.py
"""

import re
import subprocess
import sys
from collections.abc import Iterable

from hgrpo.command import run
from hgrpo.errors import UserError

# Title of an accepted finding -> reason for the exception.
EXCEPTIONS = {
    "Specify a conda environment or container for each rule.": (
        "all rules share the environment that runs snakemake; pyproject.toml and constraints.txt "
        "define it, and on a cluster the profile names one container image"
    ),
}


def main() -> None:
    """Print the findings, and count the exceptions."""
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--lint"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    places = findings(done.stdout + done.stderr)
    if bool(done.returncode) != bool(places):
        raise UserError(f"snakemake --lint failed:\n{done.stderr.strip()}")
    for title, reason in EXCEPTIONS.items():
        print(f"{len(places.pop(title, []))} findings accepted: {title} Reason: {reason}")
    if places:
        raise UserError("\n".join(["snakemake --lint:", *_lines(places)]))


def findings(printed: str) -> dict[str, list[str]]:
    """Map the titles of findings in the output of `snakemake --lint` to their rules and files."""
    places: dict[str, list[str]] = {}
    place = ""
    for line in printed.splitlines():
        if heading := re.fullmatch(r"Lints for (.*):", line):
            place = heading.group(1)
        elif title := re.fullmatch(r" {4}\* (.*):", line):
            places.setdefault(title.group(1), []).append(place)
    return places


def _lines(places: dict[str, list[str]]) -> Iterable[str]:
    for title, each in places.items():
        yield f"  {title}"
        yield from (f"    {place}" for place in each)


if __name__ == "__main__":
    run(main)
