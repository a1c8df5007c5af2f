"""Read the arms of a study: its methods, variants, and the arms of its axes."""

from collections.abc import Collection, Mapping
from pathlib import Path

from hgrpo.config.read import merge, read_yaml, validate
from hgrpo.config.strict import Strict
from hgrpo.credit.kinds import CreditConfig
from hgrpo.errors import UserError
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig
from hgrpo.study.axis_arms import arms_of_axes
from hgrpo.study.config import StudyConfig, Variant
from hgrpo.study.named_files import NamedFiles

Arm = tuple[MethodConfig, TrainingConfig]


def read_arms(
    config: StudyConfig, files: NamedFiles, listed: Collection[str], path: Path
) -> tuple[dict[str, Arm], Collection[str]]:
    """Read methods, variants and arms of axes. Also return the names of the arms of axes.

    Variants and arms of axes are validated even if they do not run. In a study with axes, all
    methods in its file (`listed`) are read, for comparison with the arms of axes.
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


def _variant(variant: Variant, name: str, files: NamedFiles, where: str) -> MethodConfig:
    credit = files.read("method", variant.of, f"{where}.of").credit
    base = read_yaml(files.configs / "methods" / f"{variant.of}.yaml")
    changes = variant.model_extra or {}
    file = files.configs / "methods" / f"{name}.yaml"
    if file.is_file():
        raise UserError(f"{where}: {file} already has this name; rename the variant")
    if "name" in changes:
        raise UserError(f"{where}.name: not allowed; a variant's name is its key, {name!r}")
    return validate(MethodConfig, _changed(base, credit, changes) | {"name": name}, where)


def _changed(base: dict, credit: CreditConfig, changes: Mapping[str, object]) -> dict:
    """Merge a variant's changes into the method `base`, whose credit section is `credit`.

    The label of `base` is dropped. If the variant changes the kind of credit, the settings of the
    old kind are dropped, and so is `alpha` if the old kind required a certain value of `alpha`.
    """
    left_out = {"label"}
    new = changes.get("credit")
    if isinstance(new, Mapping) and new.get("kind", credit.kind) != credit.kind:
        left_out |= {"credit"} | {"alpha"} & set(credit.declared.demands)
    return merge({key: value for key, value in base.items() if key not in left_out}, changes)


def resolved_arm(method: MethodConfig, training: TrainingConfig) -> dict:
    """A method with its complete training settings, as plain JSON types."""
    settings = method.model_dump(mode="json", exclude={"training"})
    return settings | {"training": training.model_dump(mode="json")}


class _MethodTraining(Strict):
    training: TrainingConfig
