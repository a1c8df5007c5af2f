"""Finds an environment by its name, which is the name of its folder in this package."""

import pkgutil
from collections.abc import Mapping

import hgrpo.envs
from hgrpo.config.plug_in import import_plug_in
from hgrpo.config.read import did_you_mean, validate
from hgrpo.envs.environment import Environment, EnvSettings
from hgrpo.errors import UserError


def known() -> list[str]:
    """Names of all environments."""
    return sorted(m.name for m in pkgutil.iter_modules(hgrpo.envs.__path__) if m.ispkg)


def load(name: str) -> Environment:
    """Return the environment that the folder `hgrpo/envs/<name>` defines.

    Raises:
        UserError: there is no such folder, it cannot be imported, or it defines no environment.
    """
    if name not in known():
        raise UserError(f"no environment {name!r}{did_you_mean(str(name), known())}")
    try:
        environment = vars(import_plug_in(f"hgrpo.envs.{name}")).get("ENVIRONMENT")
    except ValueError as error:
        raise UserError(str(error)) from error
    if not isinstance(environment, Environment):
        raise UserError(
            f"hgrpo/envs/{name}/__init__.py: ENVIRONMENT: an instance of Environment was expected"
        )
    return environment


def environment_settings(data: Mapping[str, object], source: str) -> EnvSettings:
    """Check the content of a settings file; return the settings of the environment it names.

    Args:
        data: content of a file in configs/envs.
        source: path of that file, for error messages.

    Raises:
        UserError: there is no such environment, or a setting is wrong (one line per mistake).
    """
    try:
        environment = load(data.get("name"))
    except UserError as error:
        raise UserError(f"{source}: name: {error}") from None
    return validate(environment.Settings, data, source)
