"""Find the study that a snakemake command is about."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hgrpo.config.read import read_yaml
from hgrpo.errors import UserError
from hgrpo.study.axis import SWEEP, target

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
        configured: the value of `--config study=`, "" if it is empty; None if it was not given.
        arguments: words of the command. A word chooses a study if it is the study's name, or a path
            that begins with results/<study>. If none does, `<axis>_sweep` chooses the study that
            has the axis.
        environment: environment variables. HGRPO_STUDY names the study if the command does not.
            This is how jobs on other machines get their study. Without the variable, the default
            study is chosen.

    Raises:
        UserError: the command asks for more than one study or for one without a name, or several
            have the axis.
    """
    if configured == "":
        raise UserError("study=: the name of a study was expected, such as study=bakeoff")
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
        asked = _having_axes(folder, [word for word in arguments if word.endswith(SWEEP)])
    return next(iter(asked), environment.get(STUDY_VARIABLE, _DEFAULT))


def studies_with_axis(folder: Path | str, sweep: str) -> list[str]:
    """Names of the studies that have the axis of the target `sweep`, such as `kl_sweep`."""
    if not sweep.endswith(SWEEP):
        return []
    return [path.stem for path in sorted(Path(folder).glob("*.yaml")) if sweep in _targets(path)]


def _having_axes(folder: Path | str, sweeps: Sequence[str]) -> set[str]:
    """The study that has an axis for some of the targets `sweeps`; empty if none has.

    Raises:
        UserError: several studies have.
    """
    having = {name for sweep in sweeps for name in studies_with_axis(folder, sweep)}
    if len(having) > 1:
        raise UserError(
            f"{', '.join(sweeps)}: several studies have this axis, {', '.join(sorted(having))}; "
            "add study=<one of them> to --config"
        )
    return having


def _targets(path: Path) -> set[str]:
    """The targets of a study's axes; none if the file is damaged, which other checks report."""
    try:
        axes = read_yaml(path).get("axes")
    except UserError:
        return set()
    return {target(axis) for axis in axes} if isinstance(axes, Mapping) else set()
