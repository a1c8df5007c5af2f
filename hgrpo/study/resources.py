"""Resources of the jobs of each stage."""

from collections.abc import Mapping

from pydantic import Field, create_model, model_validator

from hgrpo.config.strict import Strict
from hgrpo.stages.order import STAGES, load, resources_key

# Stages that run where the run was started, beside no other job.
_LOCAL = ("study_config", "fetch_assets")


class StageResources(Strict):
    """Resources of one job of a stage; a change reruns no finished job."""

    threads: int = Field(1, gt=0, description="cores, which are also torch's threads")
    mem_mb: int = Field(1000, gt=0, description="memory in MiB")
    runtime: int = Field(60, gt=0, description="time limit in minutes")
    gpu: int = Field(
        0, ge=0, description="GPUs of a job on a cluster; a round has one process on each"
    )


class _ByStage(Strict):
    @model_validator(mode="before")
    @classmethod
    def _keep_defaults(cls, sections: object) -> object:
        """If a study gives some keys of a stage, keep that stage's defaults for the other keys."""
        if not isinstance(sections, Mapping):
            return sections
        return {
            stage: cls.model_fields[stage].default.model_dump() | values
            if stage in cls.model_fields and isinstance(values, Mapping)
            else values
            for stage, values in sections.items()
        }

    def of(self, stage: str) -> StageResources:
        """The resources of a stage; a stage without a section has the defaults."""
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
                description="a job of "
                + ", ".join(name for name in STAGES if resources_key(name) == stage),
            ),
        )
        for stage in STAGES
        if stage == resources_key(stage) and stage not in _LOCAL
    },
)
