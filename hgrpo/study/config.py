"""The settings of a study's file."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from hgrpo.config.bounds import Name
from hgrpo.config.strict import Strict
from hgrpo.evaluation.gradients.settings import GradientsConfig
from hgrpo.evaluation.settings import AgreementConfig, EvaluationConfig
from hgrpo.evaluation.truth.settings import TruthConfig
from hgrpo.learning.settings import TrainingConfig
from hgrpo.learning.sft_settings import SftConfig
from hgrpo.rollout.settings import EngineConfig
from hgrpo.study.axis import Axis, AxisName, read_axis
from hgrpo.study.resources import Resources


class Variant(BaseModel):
    """A method given as changes to the method `of`; every key of a method but `name` may change."""

    model_config = ConfigDict(extra="allow", frozen=True)

    of: Name = Field(description="name of a file in configs/methods")


def _unique(values: list) -> list:
    twice = {value for value in values if values.count(value) > 1}
    if twice:
        raise ValueError(
            f"{', '.join(map(str, sorted(twice)))} is listed twice; each was expected once"
        )
    return values


class StudyConfig(Strict):
    """A study as its file states it, with the names of its environment, model and methods."""

    name: Name = Field(description="the study's name, and the name of its file without `.yaml`")
    description: str = Field("", description="a sentence about the study, for people")
    env: Name = Field(description="name of a file in configs/envs")
    model: Name = Field(description="name of a file in configs/models")
    methods: Annotated[list[Name], AfterValidator(_unique)] = Field(
        min_length=1,
        description="names of files in configs/methods, or of variants; arms of `axes` are added",
    )
    mine: list[Name] = Field(
        [],
        description="arms of your own beside `methods`; the report's headline begins with them",
    )
    variants: dict[Name, Variant] = Field(
        default_factory=dict,
        description="further methods: name -> `{of: <a method>, <keys that differ>}`",
    )
    axes_of: Name | None = Field(
        None, description="a study whose axes this one has too, beside those of its own `axes`"
    )
    axes: dict[AxisName, Annotated[Axis, BeforeValidator(read_axis)]] = Field(
        default_factory=dict,
        description="further methods that differ in one key: axis -> its key and values; "
        "`snakemake <axis>_sweep` runs the arms of one",
    )
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], AfterValidator(_unique)] = Field(
        [11],
        min_length=1,
        description="seeds of training; every trained arm runs once with each, and verdicts need "
        "five",
    )
    rounds: int = Field(
        5,
        ge=1,
        description="rounds of reinforcement learning; round 0 is the SFT policy",
    )
    reference: str = Field(
        "flatGRPO", description="the method that every other one is compared with"
    )
    smoke_wave: list[str] = Field(
        default_factory=list,
        description="methods that `snakemake smoke_wave` runs, and `rest_wave` all others; empty: "
        "the reference",
    )
    engine: EngineConfig = Field(
        default_factory=EngineConfig,
        description="who plays in training and evaluation, see docs/engines.md",
    )
    training: TrainingConfig = Field(
        TrainingConfig(),
        description="reinforcement learning, the same for all arms; a method may change keys",
    )
    sft: SftConfig = Field(
        SftConfig(), description="supervised fine-tuning, before the first round"
    )
    evaluation: EvaluationConfig = Field(
        EvaluationConfig(), description="games, temperatures and statistics of the comparison"
    )
    agreement: AgreementConfig = Field(
        AgreementConfig(), description="settings of `snakemake credit_agreement`"
    )
    truth: TruthConfig | None = Field(
        None,
        description="`snakemake truth`: true advantages of turns, by continuations; "
        "`credit_agreement` then compares every method with it. null: no truth",
    )
    gradients: GradientsConfig | None = Field(
        None,
        description="`snakemake gradients`: which part of the loss drives a policy, by buckets "
        "of groups. null: nothing is measured",
    )
    resources: Resources = Field(Resources(), description="resources of the jobs of each stage")

    @model_validator(mode="before")
    @classmethod
    def _mine_is_a_method(cls, section: dict) -> dict:
        mine, methods = section.get("mine"), section.get("methods")
        if isinstance(mine, list) and section.get("reference") in mine:
            raise ValueError(f"mine: {section['reference']} is the reference; name other arms")
        if isinstance(mine, list) and isinstance(methods, list):
            more = [name for name in mine if name not in methods]
            return section | {"methods": [*methods, *more]}
        return section
