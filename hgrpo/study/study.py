"""A study: one environment, one base model, several methods, several seeds."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hgrpo.config.read import check_name, merge, read_yaml, validate
from hgrpo.errors import UserError
from hgrpo.evaluation.gates import Gate
from hgrpo.evaluation.settings import Pair
from hgrpo.games.environment import EnvSettings
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig
from hgrpo.policy.settings import ModelConfig
from hgrpo.study.arms import read_arms, resolved_arm
from hgrpo.study.axis_arms import check_axes, members, shared_points
from hgrpo.study.checks import check
from hgrpo.study.config import StudyConfig
from hgrpo.study.named_files import NamedFiles, named
from hgrpo.study.overrides import by_method, changes, of_files, parse_overrides


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
            name: resolved_arm(method, self.training[name]) for name, method in self.methods.items()
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
    methods = [file.stem for file in (path.parent.parent / "methods").glob("*.yaml")]
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
    """`load_study` with parsed overrides.

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
    files = NamedFiles(path.parent.parent, of_named, overridden)
    env = files.read("env", config.env, f"{where}: env")
    model = files.read("model", config.model, f"{where}: model")
    arms, of_axes = read_arms(config, files, before.methods, path)
    if "methods" in overridden:
        _check_reference_file(config, files, [*config.variants, *of_axes], where)
    whole = {name: resolved_arm(*arm) for name, arm in arms.items()}
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
    others = [file.stem for file in (path.parent.parent / "methods").glob("*.yaml")]
    keys = by_method(of_named["methods"], [*listed, *chosen.methods, *chosen.variants], others)
    for name in keys.keys() & chosen.variants.keys():
        change = parse_overrides(keys[name], MethodConfig, f"methods.{name}.")
        typed = merge(typed, {"variants": {name: change}})
    return typed, {**of_named, **{f"methods.{name}": each for name, each in keys.items()}}


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
    """The content of a study's file, with the axes of the study that `axes_of` names."""
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
