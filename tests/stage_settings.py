"""What a study gives one of its stages, and a stage's command in this process."""

from hgrpo.cli import run_stage as cli
from hgrpo.command import run
from hgrpo.stages.order import load
from hgrpo.study.study import Study


def stage_settings(study: Study, stage: str, method: str | None = None) -> dict:
    """The settings of a stage as plain JSON types, as its rule passes them on."""
    return load(stage).from_study(study, method)


def run_stage(stage: str, *arguments: object) -> None:
    """`python -m hgrpo.cli.stage <stage>` in this process; a UserError is raised."""
    cli.run_stage(load(stage), [str(argument) for argument in arguments])


def run_command(stage: str, *arguments: object) -> None:
    """The same, but a UserError is printed and ends the process with status 2."""
    run(lambda: run_stage(stage, *arguments))
