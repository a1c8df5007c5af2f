"""Which study a snakemake command is about."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hgrpo.errors import UserError

STUDY_VARIABLE = "HGRPO_STUDY"
_DEFAULT = "bakeoff"


def chosen_study(
    folder: Path | str,
    configured: str | None,
    arguments: Sequence[str],
    environment: Mapping[str, str],
) -> str:
    """Name of the study that a command line asks for.

    Args:
        folder: of the studies' files.
        configured: what `--config study=` says.
        arguments: of the command; a target that is a study's name, or a file in its results,
            chooses it.
        environment: of the process; a job on another machine finds the study there.

    Raises:
        UserError: two different studies are asked for.
    """
    known = {path.stem for path in Path(folder).glob("*.yaml")}
    asked = {
        name
        for argument in arguments
        if (name := argument.removeprefix("./").removeprefix("results/").split("/")[0]) in known
        and (argument == name or argument.removeprefix("./").startswith("results/"))
    }
    asked |= {configured} if configured else set()
    if len(asked) > 1:
        raise UserError(f"one study at a time, not {' and '.join(sorted(asked))}")
    return next(iter(asked), environment.get(STUDY_VARIABLE, _DEFAULT))
