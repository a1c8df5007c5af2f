"""What a study gives one of its stages."""

from hgrpo.stages.order import load
from hgrpo.study.study import Study


def stage_settings(study: Study, stage: str, method: str | None = None) -> dict:
    """The settings of a stage as plain JSON types, as its rule passes them on."""
    return load(stage).from_study(study, method)
