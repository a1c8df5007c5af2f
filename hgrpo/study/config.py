"""Define the schema of a study's file."""

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
    """A method that changes keys of the method named by `of`; `name` cannot be changed."""

    model_config = ConfigDict(extra="allow", frozen=True)

    of: Name = Field(description="the base method: name of a file in configs/methods")


def _unique(values: list) -> list:
    twice = {value for value in values if values.count(value) > 1}
    if twice:
        raise ValueError(f"{', '.join(map(str, sorted(twice)))}: duplicates; list each value once")
    return values


class StudyConfig(Strict):
    """The content of a study's file, which names the environment, the model and the methods."""

    name: Name = Field(description="the study's name, and the name of its file without `.yaml`")
    description: str = Field("", description="a sentence that describes the study in the report")
    env: Name = Field(description="name of a file in configs/envs")
    model: Name = Field(description="name of a file in configs/models")
    methods: Annotated[list[Name], AfterValidator(_unique)] = Field(
        min_length=1,
        description="methods to run: names of files in configs/methods or of entries in "
        "`variants`; the arms of `axes` are added",
    )
    mine: list[Name] = Field(
        [],
        description="your own methods, which are added to `methods`; the report's headline begins "
        "with them",
    )
    variants: dict[Name, Variant] = Field(
        default_factory=dict,
        description="methods defined by changes to another method: name -> "
        "`{of: <base method>, <changed keys>}`",
    )
    axes_of: Name | None = Field(
        None, description="name of another study whose axes are added to `axes`"
    )
    axes: dict[AxisName, Annotated[Axis, BeforeValidator(read_axis)]] = Field(
        default_factory=dict,
        description="sweeps over the values of one key; each value gives one arm, and `snakemake "
        "<axis>_sweep` runs the arms of one axis",
    )
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], AfterValidator(_unique)] = Field(
        [11],
        min_length=1,
        description="training seeds; every trained arm runs once per seed; verdicts require at "
        "least five",
    )
    rounds: int = Field(
        5, ge=1, description="rounds of reinforcement learning; round 0 is the SFT policy"
    )
    reference: str = Field(
        "flatGRPO", description="the baseline method: every other method is compared with it"
    )
    smoke_wave: list[str] = Field(
        default_factory=list,
        description="methods that `snakemake smoke_wave` evaluates (default: the reference); "
        "`snakemake rest_wave` evaluates all other methods",
    )
    engine: EngineConfig = Field(
        default_factory=EngineConfig,
        description="the rollout engine for training and evaluation, see docs/engines.md",
    )
    training: TrainingConfig = Field(
        TrainingConfig(),
        description="training settings of all arms; a method may override some of them",
    )
    sft: SftConfig = Field(SftConfig(), description="supervised fine-tuning before the first round")
    evaluation: EvaluationConfig = Field(
        EvaluationConfig(), description="games, temperatures and statistics of the comparison"
    )
    agreement: AgreementConfig = Field(
        AgreementConfig(), description="settings of `snakemake credit_agreement`"
    )
    truth: TruthConfig | None = Field(
        None,
        description="settings of `snakemake truth`, which estimates ground-truth advantages; "
        "`snakemake credit_agreement` then compares each method's credit with them. null: no "
        "ground truth",
    )
    gradients: GradientsConfig | None = Field(
        None,
        description="settings of `snakemake gradients`, which measures the gradient norms of the "
        "loss components for buckets of groups; null: not measured",
    )
    resources: Resources = Field(Resources(), description="resources of each stage's jobs")

    @model_validator(mode="before")
    @classmethod
    def _mine_is_a_method(cls, section: dict) -> dict:
        mine, methods = section.get("mine"), section.get("methods")
        if isinstance(mine, list) and section.get("reference") in mine:
            raise ValueError(f"mine: {section['reference']} is the reference; list only other arms")
        if isinstance(mine, list) and isinstance(methods, list):
            more = [name for name in mine if name not in methods]
            return section | {"methods": [*methods, *more]}
        return section
