"""A study: one environment, one base model, several methods, several seeds."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from hgrpo.config.bounds import Name
from hgrpo.config.merge import merge
from hgrpo.config.read import check_name, read_yaml, validate
from hgrpo.config.strict import Strict
from hgrpo.credit.kinds import CreditConfig
from hgrpo.errors import UserError
from hgrpo.evaluation.gates import Gate
from hgrpo.evaluation.gradients.settings import GradientsConfig
from hgrpo.evaluation.settings import AgreementConfig, EvaluationConfig, Pair
from hgrpo.evaluation.truth.settings import TruthConfig
from hgrpo.games.environment import EnvSettings
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig
from hgrpo.learning.sft_settings import SftConfig
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.settings import EngineConfig
from hgrpo.study.axis import Axis, AxisName, read_axis
from hgrpo.study.axis_arms import arms_of_axes, check_axes, members, shared_points
from hgrpo.study.checks import check
from hgrpo.study.named_files import NamedFiles, named
from hgrpo.study.overrides import by_method, changes, of_files, parse_overrides
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
        description="`snakemake truth`: what turns were really worth, by continuations; "
        "`credit_agreement` then compares every method with it. null: no truth",
    )
    gradients: GradientsConfig | None = Field(
        None,
        description="`snakemake gradients`: which part of the loss drives a policy, by buckets "
        "of groups. null: nothing is measured",
    )
    resources: Resources = Field(
        Resources(), description="what the jobs of each stage ask of the machine"
    )

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


@dataclass(frozen=True)
class Study:
    """A study with every name resolved.

    Attributes:
        config: the study's own file with the overrides applied.
        env: the environment, from configs/envs/<env>.yaml.
        model: the base model, from configs/models/<model>.yaml.
        methods: method name -> the method, from configs/methods/<name>.yaml, in the study's order.
            They may lack `config.reference` if the command line chose others; then the comparison
            with it waits.
        training: method name -> the study's training with that method's changes merged in.
        overridden: key, with dots -> value, where the command line changed the study's file.
        axis_arms: axis -> value, as text -> the arm that has this value. An arm that two axes share
            belongs to both. An arm may be missing in `methods` if the command line chose others.
    """

    config: StudyConfig
    env: EnvSettings
    model: ModelConfig
    methods: dict[str, MethodConfig]
    training: dict[str, TrainingConfig]
    overridden: Mapping[str, object] = field(default_factory=dict)
    axis_arms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def has_reference(self) -> bool:
        """Whether the arm that the others are compared with is among the methods."""
        return self.config.reference in self.methods

    @property
    def step_trajectories(self) -> dict[str, int]:
        """Trained method -> number of trajectories that it trains on in a step."""
        return {
            name: self.training[name].tasks_per_step * self.training[name].rollouts_per_task
            for name, method in self.methods.items()
            if method.train
        }

    @property
    def round_trajectories(self) -> dict[str, int]:
        """Trained method -> number of trajectories that it trains on in a round."""
        return {
            name: self.training[name].steps_per_round * trajectories
            for name, trajectories in self.step_trajectories.items()
        }

    def resolved(self) -> dict:
        """The whole study as plain JSON types."""
        resolved = self.config.model_dump(mode="json")
        resolved["env"] = self.env.model_dump(mode="json")
        resolved["model"] = self.model.model_dump(mode="json")
        resolved["methods"] = {
            name: _arm(method, self.training[name]) for name, method in self.methods.items()
        }
        # Results of earlier runs know no such keys, and would seem to be of another study.
        del resolved["axes_of"]
        if not self.config.mine:
            del resolved["mine"]
        if not self.config.axes:
            del resolved["axes"]
        return resolved


def load_study(path: Path | str, overrides: Mapping[str, object] | None = None) -> Study:
    """Read a study and everything it names, and check it as a whole.

    Args:
        path: the file .../configs/studies/<name>.yaml. The folders envs, models and methods
            beside studies are read too.
        overrides: values in place of the files', as `of_files` and `parse_overrides` take them.

    Raises:
        UserError: files, or values on the command line, are missing or wrong. The message names the
            file and the key, and whether the mistake stands on the command line.
    """
    path = Path(path)
    of_study, of_named = of_files(overrides or {})
    methods = [file.stem for file in (path.parents[1] / "methods").glob("*.yaml")]
    typed = parse_overrides(of_study, StudyConfig, "", methods)
    try:
        return _load_study(path, typed, of_named)
    except UserError as error:
        if not typed and not of_named:
            raise
        # A mistake of the file alone is raised here, without a word about the command line.
        _load_study(path, {}, {})
        where = f"command line: {path} with {', '.join({**typed, **of_named})} overridden:"
        lines = [line.replace(f"{path}:", where, 1) for line in str(error).splitlines()]
        raise UserError("\n".join(lines)) from None


def _load_study(path: Path, typed: Mapping, of_named: Mapping) -> Study:
    """The study.

    Args:
        path: the study's file.
        typed: overrides of this file, from `parse_overrides`.
        of_named: overrides of the files that it names, from `of_files`.
    """
    where = str(path)
    file = read_yaml(path)
    check_name(file, path)
    # The command line may take the axes of another study.
    axes_of = {"axes_of": typed["axes_of"]} if "axes_of" in typed else {}
    stated = _with_axes_of({**file, **axes_of}, path, where)
    before = validate(StudyConfig, stated, where)
    if "methods" in of_named:
        typed, of_named = _by_arm(path, stated, typed, of_named, before.methods)
    config = validate(StudyConfig, merge(stated, typed), where) if typed else before
    config = _with_claims(config, stated, typed)
    overridden = changes(before.model_dump(mode="json"), config.model_dump(mode="json"))
    overridden |= {key: name for key, name in axes_of.items() if name != file.get(key)}
    files = NamedFiles(path.parents[1], of_named, overridden)
    env = files.read("env", config.env, f"{where}: env")
    model = files.read("model", config.model, f"{where}: model")
    arms, of_axes = _read_arms(config, files, before.methods, path)
    if "methods" in overridden:
        _check_reference_file(config, files, [*config.variants, *of_axes], where)
    whole = {name: _arm(*arm) for name, arm in arms.items()}
    check_axes(config.axes, whole, where)
    run_as = shared_points(config.axes, before.methods, whole)
    config = _with_arms(config, run_as, chosen="methods" in typed)
    axis_arms = members(config.axes, run_as)
    made = {f"variants.{name}": [name] for name in typed.get("variants") or ()}
    made |= {f"axes.{axis}": axis_arms[axis].values() for axis in typed.get("axes", ())}
    _check_readers(of_named, made, config.methods)
    if config.axes and "methods" in typed:
        # Also if the file lists the same ones, because then the axes' arms are left out.
        overridden["methods"] = config.methods
    methods, training = ({name: arms[name][k] for name in config.methods} for k in (0, 1))
    study = Study(config, env, model, methods, training, overridden, axis_arms)
    check(study, path)
    return study


def _by_arm(
    path: Path, stated: Mapping, typed: Mapping, of_named: Mapping, listed: Collection[str]
) -> tuple[Mapping, Mapping]:
    """Both kinds of overrides, with those of methods by arm, and those of variants in the file."""
    chosen = validate(StudyConfig, merge(stated, typed), str(path))
    others = [file.stem for file in (path.parents[1] / "methods").glob("*.yaml")]
    keys = by_method(of_named["methods"], [*listed, *chosen.methods, *chosen.variants], others)
    for name in keys.keys() & chosen.variants.keys():
        change = parse_overrides(keys[name], MethodConfig, f"methods.{name}.")
        typed = merge(typed, {"variants": {name: change}})
    return typed, {**of_named, **{f"methods.{name}": each for name, each in keys.items()}}


Arm = tuple[MethodConfig, TrainingConfig]


def _read_arms(
    config: StudyConfig, files: NamedFiles, listed: Collection[str], path: Path
) -> tuple[dict[str, Arm], Collection[str]]:
    """All variants, arms of axes and methods, and the names of the arms of axes.

    Variants and arms of axes are checked too if they are not among the methods. Arms of axes are
    compared with the methods that the file lists (`listed`), whether or not they run.
    """
    where, plain = str(path), NamedFiles(files.configs)
    arms: dict[str, Arm] = {}

    def add(name: str, method: MethodConfig, source: str) -> None:
        merged = {"training": merge(config.training.model_dump(), method.training)}
        arms[name] = method, validate(_MethodTraining, merged, source).training

    for name, variant in config.variants.items():
        source = f"{where}: variants.{name}"
        add(name, _variant(variant, name, plain, source), source)
    for axis, settings in config.axes.items():
        plain.read("method", settings.of, f"{where}: axes.{axis}.of")
    of_axes = arms_of_axes(config.axes, config.variants, path.parent, where)
    for name, (axis, variant) in of_axes.items():
        source = f"{where}: axes.{axis}: {name}"
        add(name, _variant(Variant(**variant), name, plain, source), source)
    also = [*config.variants, *of_axes]
    for name in dict.fromkeys([*config.methods, *(listed if config.axes else [])]):
        if name not in also:
            source = str(files.configs / "methods" / f"{name}.yaml")
            add(name, files.read("method", name, f"{where}: methods", also), source)
    return arms, of_axes


def _check_reference_file(
    config: StudyConfig, files: NamedFiles, arms: Collection[str], where: str
) -> None:
    """Refuse a reference that is no trained method, also if the command line leaves it out."""
    name = config.reference
    if name in (*config.methods, *arms):
        return
    method = NamedFiles(files.configs).read("method", name, f"{where}: reference", arms)
    if not method.train:
        raise UserError(f"{where}: reference: {name!r} is not a trained method")


def _check_readers(
    of_named: Mapping, made: Mapping[str, Collection[str]], arms: Collection[str]
) -> None:
    """Refuse a change of the command line that no arm of the run reads.

    `of_named` maps `methods.<name>` to overrides; `made` maps keys of variants and axes to their
    arms.
    """
    places = [place for place in of_named if place.startswith("methods.")]
    keys = {f"{p}.{next(iter(of_named[p]))}": [p.removeprefix("methods.")] for p in places}
    for key, names in {**keys, **made}.items():
        if not {*arms} & {*names}:
            raise UserError(
                f"command line: {key}: no arm of this run reads it; its arms are {', '.join(arms)}"
            )


def _with_axes_of(stated: Mapping, path: Path, where: str) -> Mapping:
    """What a study states, with the axes of the study beside `path` that `axes_of` names."""
    other, further = stated.get("axes_of"), stated.get("axes", {})
    if not isinstance(other, str) or not isinstance(further, Mapping):
        return stated
    content, source = named(path.parent, other, f"{where}: axes_of")
    axes = content.get("axes")
    if not isinstance(axes, Mapping):
        raise UserError(f"{where}: axes_of: {source} has no section `axes`")
    return {**stated, "axes": {**axes, **further}}


def _with_arms(config: StudyConfig, run_as: Mapping[str, str], chosen: bool) -> StudyConfig:
    """The study with its axes' arms among the methods; if those were `chosen`, with no others.

    Args:
        config: the study.
        run_as: from `shared_points`.
        chosen: whether the command line names the methods.
    """

    def run(names: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(run_as.get(name, name) for name in names))

    def run_in(claim: Gate | Pair) -> Gate | Pair:
        arms = {key: arm for key, arm in claim if key in ("arm", "against")}
        return claim.model_copy(update={key: run_as.get(arm, arm) for key, arm in arms.items()})

    declared = config.evaluation
    claims = {
        key: [run_in(claim) for claim in getattr(declared, key)] for key in ("gates", "pairs")
    }
    return config.model_copy(
        update={
            "methods": run([*config.methods, *([] if chosen else run_as)]),
            "reference": run_as.get(config.reference, config.reference),
            "evaluation": declared.model_copy(update=claims),
            "smoke_wave": run(config.smoke_wave),
        }
    )


def _with_claims(config: StudyConfig, stated: Mapping, typed: Mapping) -> StudyConfig:
    """The study with overrides, without the file's gates and pairs if its reference changed.

    The gates are claims about the file's reference, and a pair may hold the new one.
    """
    usual = stated.get("reference", StudyConfig.model_fields["reference"].default)
    section = typed.get("evaluation")
    left = {"gates", "pairs"} - ({*section} if isinstance(section, Mapping) else set())
    if config.reference == usual or not left:
        return config
    without = config.evaluation.model_copy(update={key: [] for key in left})
    return config.model_copy(update={"evaluation": without})


def _variant(variant: Variant, name: str, files: NamedFiles, where: str) -> MethodConfig:
    credit = files.read("method", variant.of, f"{where}.of").credit
    base = read_yaml(files.configs / "methods" / f"{variant.of}.yaml")
    changes = variant.model_extra or {}
    file = files.configs / "methods" / f"{name}.yaml"
    if file.is_file():
        raise UserError(f"{where}: {file} is a method of that name; choose another")
    if "name" in changes:
        raise UserError(f"{where}.name: a variant's name is its key, {name!r}")
    return validate(MethodConfig, _changed(base, credit, changes) | {"name": name}, where)


def _changed(base: dict, credit: CreditConfig, changes: Mapping[str, object]) -> dict:
    """The method `base`, with its section `credit`, and a variant's changes merged in.

    The label of `base` is dropped, because it names another arm. If the variant changes the kind of
    credit, the old kind's settings are dropped, because the new kind does not have them, and so is
    an alpha that the old kind demanded.
    """
    left_out = {"label"}
    new = changes.get("credit")
    if isinstance(new, Mapping) and new.get("kind", credit.kind) != credit.kind:
        left_out |= {"credit"} | {"alpha"} & set(credit.declared.demands)
    return merge({key: value for key, value in base.items() if key not in left_out}, changes)


def _arm(method: MethodConfig, training: TrainingConfig) -> dict:
    """A method with all its settings of training, as plain JSON types."""
    settings = method.model_dump(mode="json", exclude={"training"})
    return settings | {"training": training.model_dump(mode="json")}


class _MethodTraining(Strict):
    training: TrainingConfig
