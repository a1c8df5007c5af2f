"""Find the study that a snakemake command is about."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hgrpo.config.read import read_yaml
from hgrpo.errors import UserError
from hgrpo.study.axis import SWEEP

STUDY_VARIABLE = "HGRPO_STUDY"
_DEFAULT = "bakeoff"


def chosen_study(
    folder: Path | str,
    configured: str | None,
    arguments: Sequence[str],
    environment: Mapping[str, str],
) -> str:
    """The name of the study that a command line asks for.

    Args:
        folder: the folder of study files.
        configured: the value of `--config study=`; None if it was not given.
        arguments: words of the command. A word chooses a study if it is the study's name, or a path
            that begins with results/<study>. If none does, `<axis>_sweep` chooses the study that
            has the axis.
        environment: environment variables. HGRPO_STUDY names the study if the command does not.
            This is how jobs on other machines get their study. Without the variable, the default
            study is chosen.

    Raises:
        UserError: the command asks for more than one study, or several have the axis.
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
    if not asked and STUDY_VARIABLE not in environment:
        asked = _with_axes(Path(folder), [word for word in arguments if word.endswith(SWEEP)])
    return next(iter(asked), environment.get(STUDY_VARIABLE, _DEFAULT))


def _with_axes(folder: Path, targets: Sequence[str]) -> set[str]:
    """The study that has an axis for one of the targets; empty if none has.

    Raises:
        UserError: several studies have.
    """
    if not targets:
        return set()
    having = {path.stem for path in folder.glob("*.yaml") if _axes(path) & set(targets)}
    if len(having) > 1:
        raise UserError(
            f"{', '.join(targets)}: several studies have this axis, {', '.join(sorted(having))}; "
            "add study=<one of them> to --config"
        )
    return having


def _axes(path: Path) -> set[str]:
    """The targets of a study's axes; none of a file that is no study, for others to refuse."""
    try:
        axes = read_yaml(path).get("axes")
    except UserError:
        return set()
    return {f"{axis}{SWEEP}" for axis in axes} if isinstance(axes, Mapping) else set()
