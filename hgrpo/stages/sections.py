"""Validate an environment's settings, given as a file in configs/envs or as a section `env`."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, SerializeAsAny

from hgrpo.config.read import validate
from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.games.environment import EnvSettings
from hgrpo.games.kinds import load


def environment_settings(data: Mapping[str, object], source: str) -> EnvSettings:
    """Validate the content of a file in configs/envs; `source` is its path, for messages.

    Raises:
        UserError: there is no such environment, or a setting is invalid (one line per mistake).
    """
    try:
        environment = load(data.get("name"))
    except UserError as error:
        raise UserError(f"{source}: name: {error}") from None
    return validate(environment.Settings, data, source)


def _environment(section: object) -> object:
    return (
        section
        if isinstance(section, EnvSettings)
        else environment_settings(section, "--config: env")
    )


class EnvName(Strict):
    """The name of an environment, for stages that do not use its other settings."""

    name: str


# The section's key `name` selects the pydantic model that validates the section.
Env = Annotated[SerializeAsAny[EnvSettings], BeforeValidator(_environment)]
