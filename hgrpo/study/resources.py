"""What the jobs of each stage ask of the machine."""

from collections.abc import Mapping

from pydantic import Field, model_validator

from hgrpo.config.strict import Strict


class StageResources(Strict):
    """What one job of a stage asks of the machine; never part of what is computed."""

    threads: int = Field(1, gt=0)
    mem_mb: int = Field(1000, gt=0, description="MiB")
    runtime: int = Field(60, gt=0, description="minutes")
    gpu: int = Field(
        0, ge=0, description="GPUs, where the profile is a cluster's; a round has a process on each"
    )


class Resources(Strict):
    """Resources by stage."""

    assets: StageResources = StageResources()
    expert: StageResources = StageResources()
    base: StageResources = StageResources(mem_mb=2000)
    sft: StageResources = StageResources(mem_mb=2500)
    rl_round: StageResources = StageResources(mem_mb=1700)
    turnrd_fit: StageResources = StageResources(mem_mb=1500)
    evaluate: StageResources = StageResources(mem_mb=1500)
    report: StageResources = StageResources()
    credit_agreement: StageResources = StageResources(mem_mb=2000)

    @model_validator(mode="before")
    @classmethod
    def _keep_what_is_not_said(cls, given: object) -> object:
        """A stage of which one key is given keeps its own defaults for the others."""
        if not isinstance(given, Mapping):
            return given
        return {
            stage: cls.model_fields[stage].default.model_dump() | values
            if stage in cls.model_fields and isinstance(values, Mapping)
            else values
            for stage, values in given.items()
        }
