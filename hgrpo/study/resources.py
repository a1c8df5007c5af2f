"""Define the resources of each stage's jobs."""

from collections.abc import Mapping

from pydantic import Field, create_model, model_validator

from hgrpo.config.strict import Strict
from hgrpo.stages.order import STAGES, load, resources_key

# Stages that always run on the submitting machine.
_LOCAL = ("study_config", "fetch_assets")


class StageResources(Strict):
    """Resources of one job of a stage. If they change, finished jobs do not run again."""

    threads: int = Field(1, gt=0, description="number of cores and of torch threads")
    mem_mb: int = Field(1000, gt=0, description="memory in MiB")
    runtime: int = Field(60, gt=0, description="time limit in minutes")
    gpu: int = Field(
        0, ge=0, description="GPUs of a job on a cluster; a round runs one process per GPU"
    )


class _ByStage(Strict):
    @model_validator(mode="before")
    @classmethod
    def _keep_defaults(cls, sections: object) -> object:
        if not isinstance(sections, Mapping):
            return sections
        return {
            stage: cls.model_fields[stage].default.model_dump() | values
            if stage in cls.model_fields and isinstance(values, Mapping)
            else values
            for stage, values in sections.items()
        }

    def of(self, stage: str) -> StageResources:
        """The resources of a stage; default values if the stage has no section."""
        return dict(self).get(stage, StageResources())


Resources = create_model(
    "Resources",
    __base__=_ByStage,
    __doc__="Resources by stage.",
    **{
        stage: (
            StageResources,
            Field(
                StageResources(**load(stage).RESOURCES),
                description="resources of each job; stages: "
                + ", ".join(name for name in STAGES if resources_key(name) == stage),
            ),
        )
        for stage in STAGES
        if stage == resources_key(stage) and stage not in _LOCAL
    },
)
