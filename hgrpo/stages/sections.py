"""The section `env` of a stage's settings; `env.name` decides which pydantic model checks it."""

from typing import Annotated

from pydantic import BeforeValidator, SerializeAsAny

from hgrpo.envs.environment import EnvSettings
from hgrpo.envs.kinds import environment_settings


def _environment(given: object) -> object:
    return given if isinstance(given, EnvSettings) else environment_settings(given, "--config: env")


Env = Annotated[SerializeAsAny[EnvSettings], BeforeValidator(_environment)]
