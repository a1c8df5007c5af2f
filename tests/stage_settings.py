"""What a study gives one of its stages, and a stage's command in this process."""

from hgrpo.cli.stage import parse_and_run
from hgrpo.stages.order import load
from hgrpo.study.study import Study


def stage_settings(study: Study, stage: str, method: str | None = None) -> dict:
    """The settings of a stage as plain JSON types, as its rule passes them on."""
    return load(stage).from_study(study, method)


def run_stage(stage: str, *arguments: object) -> None:
    """`python -m hgrpo.cli.<stage>` in this process; a UserError is raised and not printed."""
    parse_and_run(load(stage), [str(argument) for argument in arguments])
