"""Config of an environment, by its name."""

from collections.abc import Mapping

from hgrpo.config.read import did_you_mean, validate
from hgrpo.envs.alfworld.settings import AlfworldConfig
from hgrpo.envs.webshop.settings import WebshopConfig
from hgrpo.errors import UserError

EnvConfig = AlfworldConfig | WebshopConfig
ENVIRONMENTS: dict[str, type[EnvConfig]] = {"alfworld": AlfworldConfig, "webshop": WebshopConfig}


def environment(data: Mapping[str, object], source: str) -> EnvConfig:
    """The config of the environment that `data` names.

    Raises:
        UserError: there is no such environment, or one line per mistake in its settings.
    """
    if "name" not in data:
        raise UserError(f"{source}: name: required, but not given")
    name = data["name"]
    if name not in ENVIRONMENTS:
        raise UserError(
            f"{source}: name: no environment {name!r}{did_you_mean(str(name), ENVIRONMENTS)}"
        )
    return validate(ENVIRONMENTS[name], data, source)
