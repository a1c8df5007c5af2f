"""Load a study: one environment, one base model, several methods and several seeds."""

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
    """A study whose named environment, model and methods have been read.

    Attributes:
        config: the study's file with the overrides applied.
        env: the environment, from configs/envs/<env>.yaml.
        model: the base model, from configs/models/<model>.yaml.
        methods: maps names to methods, from configs/methods/<name>.yaml, in the study's order. The
            reference is missing if the command line selects only other methods.
        training: maps each method to the study's training settings with the method's changes.
        overridden: maps each dotted key that was overridden on the command line to its value.
        axis_arms: maps each axis and value (as text) to the name of the arm with this value. An arm
            can belong to several axes. It is not in `methods` if the command line excludes it.
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
        """Whether the reference is among the methods."""
        return self.config.reference in self.methods

    @property
    def step_trajectories(self) -> dict[str, int]:
        """Map each trained method to its number of training trajectories per step."""
        return {
            name: self.training[name].tasks_per_step * self.training[name].rollouts_per_task
            for name, method in self.methods.items()
            if method.train
        }

    @property
    def round_trajectories(self) -> dict[str, int]:
        """Map each trained method to its number of training trajectories per round."""
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
        # Omit keys that older results do not contain, so that unchanged studies compare as equal.
        del resolved["axes_of"]
        if not self.config.mine:
            del resolved["mine"]
        if not self.config.axes:
            del resolved["axes"]
        return resolved


def load_study(path: Path | str, overrides: Mapping[str, object] | None = None) -> Study:
    """Read and validate a study with its environment, model and methods.

    Args:
        path: the file .../configs/studies/<name>.yaml; environments, models and methods are read
            from the sibling folders of studies.
        overrides: command-line overrides, in the format of `of_files` and `parse_overrides`.

    Raises:
        UserError: a file is missing, or a file or an override is invalid. The message names the
            file and the key, and contains "command line" if an override caused the error.
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
        # If the file is invalid even without overrides, raise an error that does not mention them.
        _load_study(path, {}, {})
        where = f"command line: {path} with {', '.join({**typed, **of_named})} overridden:"
        lines = [line.replace(f"{path}:", where, 1) for line in str(error).splitlines()]
        raise UserError("\n".join(lines)) from None


def _load_study(path: Path, typed: Mapping, of_named: Mapping) -> Study:
    """Load a study. `typed` overrides the study's file, and `of_named` overrides other files."""
    where = str(path)
    file = read_yaml(path)
    check_name(file, path)
    # The command line may set `axes_of` to include the axes of another study.
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
        # Record `methods` even if the list is unchanged, because the override excludes axis arms.
        overridden["methods"] = config.methods
    methods, training = ({name: arms[name][k] for name in config.methods} for k in (0, 1))
    study = Study(config, env, model, methods, training, overridden, axis_arms)
    check(study, path)
    return study


def _by_arm(
    path: Path, stated: Mapping, typed: Mapping, of_named: Mapping, listed: Collection[str]
) -> tuple[Mapping, Mapping]:
    """Group overrides of methods by arm. Overrides of variants are merged into `typed`."""
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
    name = config.reference
    if name in (*config.methods, *arms):
        return
    method = NamedFiles(files.configs).read("method", name, f"{where}: reference", arms)
    if not method.train:
        raise UserError(f"{where}: reference: {name!r} is not a trained method")


def _check_readers(
    of_named: Mapping, made: Mapping[str, Collection[str]], arms: Collection[str]
) -> None:
    """Reject command-line overrides that no arm of the run uses.

    `of_named` maps `methods.<name>` to overrides. `made` maps each overridden key of a variant or
    an axis to the arms that it affects.
    """
    places = [place for place in of_named if place.startswith("methods.")]
    keys = {f"{p}.{next(iter(of_named[p]))}": [p.removeprefix("methods.")] for p in places}
    for key, names in {**keys, **made}.items():
        if not {*arms} & {*names}:
            raise UserError(
                f"command line: {key}: not used by any arm of this run ({', '.join(arms)})"
            )


def _with_axes_of(stated: Mapping, path: Path, where: str) -> Mapping:
    """The content of a study's file, including the axes of the study in `axes_of`."""
    other, further = stated.get("axes_of"), stated.get("axes", {})
    if not isinstance(other, str) or not isinstance(further, Mapping):
        return stated
    content, source = named(path.parent, other, f"{where}: axes_of")
    axes = content.get("axes")
    if not isinstance(axes, Mapping):
        raise UserError(f"{where}: axes_of: study {source} has no section `axes`")
    return {**stated, "axes": {**axes, **further}}


def _with_arms(config: StudyConfig, run_as: Mapping[str, str], chosen: bool) -> StudyConfig:
    """Add the arms of axes to the study's methods, and keep only one of several identical arms.

    Args:
        config: the content of the study's file.
        run_as: maps each arm of an axis to the arm that is run instead; see `shared_points`.
        chosen: whether the command line selects the methods. If true, no arms are added.
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
    """Drop the gates and pairs in the study's file if the command line changed the reference.

    The gates compare arms with the old reference, and a pair may contain the new reference.
    """
    usual = stated.get("reference", StudyConfig.model_fields["reference"].default)
    section = typed.get("evaluation")
    left = {"gates", "pairs"} - ({*section} if isinstance(section, Mapping) else set())
    if config.reference == usual or not left:
        return config
    without = config.evaluation.model_copy(update={key: [] for key in left})
    return config.model_copy(update={"evaluation": without})
