"""Notices a misspelt `--workflow-profile`, which Snakemake ignores without a word."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.workflow.planning.profile import nearest_profile

_FOLDER = Path("profiles")
# Snakemake's word for a run without any profile.
_NO_PROFILE = "none"


def check_given_profile(arguments: Sequence[str], here: Path | None, project: Path) -> None:
    """Refuse a profile on the command line that Snakemake will not find.

    Snakemake looks for PROFILE and for profiles/PROFILE where the command was given, and for
    profiles/PROFILE beside the Snakefile. If none is there, it runs without a profile.

    Args:
        arguments: words of the command, without the program.
        here: the folder that the command was given in; None if it is not known, as after
            `--directory`. Then only an absolute path is checked.
        project: the folder of the Snakefile.

    Raises:
        UserError: there is no such profile. The message suggests the nearest.
    """
    # Reads `--workflow-profile=P` and shortened names as Snakemake's own parser does.
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--workflow-profile", type=Path)
    given = parser.parse_known_args(arguments)[0].workflow_profile
    if given in (None, Path(_NO_PROFILE)) or (here is None and not given.is_absolute()):
        return
    places = [project / _FOLDER / given, *([here / given, here / _FOLDER / given] if here else [])]
    if not any(place.exists() for place in places):
        folders = (project / _FOLDER, (here or project) / given.parent)
        raise UserError(
            f"--workflow-profile {given}: no such profile{nearest_profile(given.name, *folders)}"
        )
