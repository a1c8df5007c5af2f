"""The section `env` of a stage's settings: all of it, or only the environment's name."""

from typing import Annotated

from pydantic import BeforeValidator, SerializeAsAny

from hgrpo.config.strict import Strict
from hgrpo.envs.environment import EnvSettings
from hgrpo.envs.kinds import environment_settings


def _environment(section: object) -> object:
    return (
        section
        if isinstance(section, EnvSettings)
        else environment_settings(section, "--config: env")
    )


class EnvName(Strict):
    """The name of an environment, for stages that need no more of it."""

    name: str


# `name` decides which pydantic model checks the section.
Env = Annotated[SerializeAsAny[EnvSettings], BeforeValidator(_environment)]
