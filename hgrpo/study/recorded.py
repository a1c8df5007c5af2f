"""Read the study of a results folder from its config.yaml."""

from collections.abc import Mapping
from pathlib import Path

from hgrpo.config.read import read_yaml, validate
from hgrpo.errors import UserError
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig
from hgrpo.policy.settings import ModelConfig
from hgrpo.stages.sections import environment_settings
from hgrpo.study.config import StudyConfig
from hgrpo.study.study import Study


def recorded_file(results: Path) -> Path:
    """Path of config.yaml, in which the first job of a study saves the resolved study."""
    return results / "config.yaml"


def recorded_study(results: Path) -> Study:
    """Read the resolved study that the first job of the study saved in the folder `results`.

    Raises:
        UserError: config.yaml is missing, is not a resolved study, or is invalid.
    """
    path = recorded_file(results)
    if not path.is_file():
        raise UserError(
            f"{path}: no such file; run the study first, or pass its folder results/<study>"
        )
    content = read_yaml(path)
    try:
        env, model, arms = content["env"], content["model"], content["methods"]
        names = {"env": env["name"], "model": model["name"], "methods": list(arms)}
        training = {name: arm["training"] for name, arm in arms.items()}
    except (LookupError, TypeError, AttributeError):
        raise UserError(f"{path}: the file is not a resolved study") from None
    known: Mapping = {key: content[key] for key in StudyConfig.model_fields if key in content}
    return Study(
        validate(StudyConfig, known | names, str(path)),
        environment_settings(env, f"{path}: env"),
        validate(ModelConfig, model, f"{path}: model"),
        {
            name: validate(MethodConfig, arm, f"{path}: methods.{name}")
            for name, arm in arms.items()
        },
        {
            name: validate(TrainingConfig, section, f"{path}: methods.{name}.training")
            for name, section in training.items()
        },
    )
