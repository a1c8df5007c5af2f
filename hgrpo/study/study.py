"""A study: one environment, one base model, several methods, several seeds."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from hgrpo.config.bounds import Name
from hgrpo.config.merge import merge
from hgrpo.config.mistakes import Mistakes
from hgrpo.config.read import check_name, did_you_mean, read_yaml, validate, without_mistakes
from hgrpo.config.strict import Strict
from hgrpo.credit.section import CreditConfig
from hgrpo.envs.environment import EnvSettings
from hgrpo.errors import UserError
from hgrpo.evaluation.gates import Gate
from hgrpo.evaluation.gradients.settings import GradientsConfig
from hgrpo.evaluation.settings import AgreementConfig, EvaluationConfig, Pair
from hgrpo.evaluation.truth.settings import TruthConfig
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig
from hgrpo.learning.sft_settings import SftConfig
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.settings import EngineConfig
from hgrpo.study.axis import Axis, AxisName, read_axis
from hgrpo.study.axis_arms import arms_of_axes, check_axes, members, shared_points
from hgrpo.study.checks import check
from hgrpo.study.named_files import NamedFiles, named
from hgrpo.study.overrides import by_method, changes, of_files, parse_each
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
    def _mine_is_a_method(cls, given: dict) -> dict:
        mine, methods = given.get("mine"), given.get("methods")
        if isinstance(mine, list) and given.get("reference") in mine:
            raise ValueError(f"mine: {given['reference']} is the reference; name other arms")
        if isinstance(mine, list) and isinstance(methods, list):
            return given | {"methods": [*methods, *(name for name in mine if name not in methods)]}
        return given


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
        UserError: files, or values given on the command line, are missing or wrong: one line per
            mistake. It names the file and the key, and says if the command line is to blame.
    """
    path, mistakes = Path(path), Mistakes()
    own, typed = of_files(overrides or {}, mistakes)
    methods = [file.stem for file in (path.parent.parent / "methods").glob("*.yaml")]
    given = parse_each(own, StudyConfig, mistakes, "", methods)
    study = mistakes.attempt(_load_study, path, given, typed, mistakes)
    if study is None:
        alone = Mistakes()
        alone.attempt(_load_study, path, {}, {}, alone)
        where = f"command line: {path} with {', '.join({**given, **typed})} overridden:"
        lines = [m if m in alone else m.replace(f"{path}:", where, 1) for m in mistakes]
        raise UserError("\n".join(lines))
    return study


def _with_known_axes(given: Mapping, known: Mapping, where: str) -> Mapping:
    """Return `given`, which may change an axis or hold a whole new one; otherwise UserError."""
    axes = given.get("axes", {})
    for name, axis in axes.items() if isinstance(axes, Mapping) else ():
        if name not in known and isinstance(axis, Mapping) and "of" not in axis:
            raise UserError(f"{where}: axes.{name}: no such axis{did_you_mean(name, known)}")
    return given


class _Lenient(StudyConfig):
    """A study's file as far as it can be read, so that the files it names are checked too."""

    name: Name | None = None
    env: Name | None = None
    model: Name | None = None
    methods: list[Name] = []


def _config(stated: Mapping, path: Path, mistakes: Mistakes) -> StudyConfig:
    """The content of a study's file; if it has mistakes, without them."""
    mistakes.attempt(check_name, stated, path)
    config = mistakes.attempt(validate, StudyConfig, stated, str(path))
    return config or without_mistakes(_Lenient, stated) or _Lenient()


def _load_study(path: Path, given: Mapping, typed: Mapping, mistakes: Mistakes) -> Study | None:
    """The study; None if there are mistakes, of which each adds a line to `mistakes`.

    Args:
        path: the study's file.
        given: overrides of this file, from `parse_overrides`.
        typed: overrides of the files that it names, from `of_files`.
        mistakes: lines of user errors.
    """
    attempt, configs, where = mistakes.attempt, path.parent.parent, str(path)
    file = read_yaml(path)
    # The command line may take the axes of another study.
    axes_of = {"axes_of": given["axes_of"]} if "axes_of" in given else {}
    stated = attempt(_with_axes_of, {**file, **axes_of}, path, where) or file
    other = {key: value for key, value in given.items() if key != "axes"}
    given = attempt(_with_known_axes, given, stated.get("axes") or {}, where) or other
    before = _config(stated, path, mistakes)
    made = {f"variants.{name}": [name] for name in given.get("variants") or ()}
    if "methods" in typed:
        chosen = _config(merge(stated, given), path, Mistakes())
        listed = [*before.methods, *chosen.methods, *chosen.variants]
        others = [file.stem for file in (configs / "methods").glob("*.yaml")]
        keys = by_method(typed["methods"], listed, others, mistakes)
        typed = {**typed, **{f"methods.{name}": each for name, each in keys.items()}}
        for name in keys.keys() & chosen.variants.keys():
            change = parse_each(keys[name], MethodConfig, mistakes, f"methods.{name}.")
            given = merge(given, {"variants": {name: change}})
    config = _config(merge(stated, given), path, mistakes) if given else before
    config = _with_claims(config, stated, given)
    overridden = changes(before.model_dump(mode="json"), config.model_dump(mode="json"))
    overridden |= {key: name for key, name in axes_of.items() if name != file.get(key)}
    plain, files = NamedFiles(configs), NamedFiles(configs, typed, overridden)
    env = config.env and attempt(files.read, "env", config.env, f"{where}: env")
    model = config.model and attempt(files.read, "model", config.model, f"{where}: model")

    def arm(source: str, read: Callable, *given: object) -> tuple[MethodConfig, TrainingConfig]:
        method = read(*given)
        return method, _merge_training(config, method, source)

    # Check all variants and arms of axes, also those that are not among the methods.
    both = {}
    for name, variant in config.variants.items():
        source = f"{where}: variants.{name}"
        both[name] = attempt(arm, source, _variant, variant, name, plain, source)
    wrong = {
        axis
        for axis, settings in config.axes.items()
        if not attempt(plain.read, "method", settings.of, f"{where}: axes.{axis}.of")
    }
    arms = attempt(arms_of_axes, config.axes, config.variants, path.parent, where)
    if arms is None:
        return None
    for name, (axis, variant) in arms.items():
        source = f"{where}: axes.{axis}: {name}"
        # One arm's mistake is most often that of all.
        if axis not in wrong:
            both[name] = attempt(arm, source, _variant, Variant(**variant), name, plain, source)
            wrong |= {axis} if both[name] is None else set()
    # Arms of axes are compared with the methods that the file lists, whether or not they run.
    listed, also = before.methods, [*config.variants, *arms]
    for name in dict.fromkeys([*config.methods, *(listed if config.axes else [])]):
        if name not in also:
            source = str(configs / "methods" / f"{name}.yaml")
            both[name] = attempt(arm, source, files.read, "method", name, f"{where}: methods", also)
    methods = {name: each[0] for name, each in both.items() if each}
    training = {name: each[1] for name, each in both.items() if each}
    # The command line may leave the reference out, but it must be a method all the same.
    if "methods" in overridden and config.reference not in methods:
        place = f"{where}: reference"
        if (method := attempt(plain.read, "method", config.reference, place, also)) and not (
            method.train
        ):
            mistakes.append(f"{place}: {config.reference!r} is not a trained method")
    if not mistakes:
        whole = {name: _arm(method, training[name]) for name, method in methods.items()}
        attempt(check_axes, config.axes, whole, where)
    complete = not mistakes
    run_as = shared_points(config.axes, listed, whole) if complete else {arm: arm for arm in arms}
    config = _with_arms(config, run_as, chosen="methods" in given)
    axis_arms = members(config.axes, run_as)
    made = {key: names for key, names in made.items() if methods.keys() >= {*names}}
    if complete:
        made |= {f"axes.{axis}": axis_arms[axis].values() for axis in given.get("axes", ())}
    mistakes.extend(_of_other_arms(typed, made, config.methods) if config.methods else ())
    if config.axes and "methods" in given:
        # Also if the file lists the same ones, because then the axes' arms are left out.
        overridden["methods"] = config.methods
    study = Study(
        config,
        env,
        model,
        {name: methods[name] for name in config.methods if name in methods},
        {name: training[name] for name in config.methods if name in methods},
        overridden,
        axis_arms,
    )
    attempt(check, study, path, complete)
    return None if mistakes else study


def _of_other_arms(
    typed: Mapping, made: Mapping[str, Collection[str]], arms: Collection[str]
) -> list[str]:
    """A mistake for each change of the command line that no arm of the run reads.

    `typed` maps `methods.<name>` to overrides; `made` maps keys of variants and axes to their arms.
    """
    places = [place for place in typed if place.startswith("methods.")]
    keys = {f"{each}.{next(iter(typed[each]))}": [each.removeprefix("methods.")] for each in places}
    said = f"no arm of this run reads it; its arms are {', '.join(arms)}"
    by_key = {**keys, **made}.items()
    return [f"command line: {key}: {said}" for key, names in by_key if not {*arms} & {*names}]


def _with_axes_of(stated: Mapping, path: Path, where: str) -> Mapping:
    """What a study states, with the axes of the study beside `path` that `axes_of` names."""
    other, own = stated.get("axes_of"), stated.get("axes", {})
    if not isinstance(other, str) or not isinstance(own, Mapping):
        return stated
    content, source = named(path.parent, other, f"{where}: axes_of")
    axes = content.get("axes")
    if not isinstance(axes, Mapping):
        raise UserError(f"{where}: axes_of: {source} has no section `axes`")
    return {**stated, "axes": {**axes, **own}}


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


def _with_claims(config: StudyConfig, stated: Mapping, given: Mapping) -> StudyConfig:
    """The study with overrides. Its file's gates speak of its reference, and of no other.

    The same holds for its pairs, because one of them may hold the new reference.
    """
    usual = stated.get("reference", StudyConfig.model_fields["reference"].default)
    section = given.get("evaluation")
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
    """The method `base`, whose section `credit` is given, with a variant's changes merged in.

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
    own = method.model_dump(mode="json", exclude={"training"})
    return own | {"training": training.model_dump(mode="json")}


def _merge_training(config: StudyConfig, method: MethodConfig, source: str) -> TrainingConfig:
    merged = merge(config.training.model_dump(), method.training)
    return validate(_MethodTraining, {"training": merged}, source).training


class _MethodTraining(Strict):
    training: TrainingConfig
