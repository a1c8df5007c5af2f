"""The section `env` of a stage's settings: all of it, or only the environment's name."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, SerializeAsAny

from hgrpo.config.strict import Strict
from hgrpo.envs.environment import EnvSettings
from hgrpo.envs.kinds import environment_settings
from hgrpo.stages.job import Job


def _environment(given: object) -> object:
    return given if isinstance(given, EnvSettings) else environment_settings(given, "--config: env")


class EnvName(Strict):
    """The name of an environment, for stages that need no more of it."""

    name: str


# `name` decides which pydantic model checks the section.
Env = Annotated[SerializeAsAny[EnvSettings], BeforeValidator(_environment)]


def file_or_section(given: Mapping, job: Job) -> dict:
    """Accept also the content of a file in configs/envs, which has no key `env`."""
    return dict(given) if "env" in given else {"env": given}


def only_the_name(given: Mapping, job: Job) -> dict:
    """Accept also a resolved study; of its section `env`, only `name` is read."""
    env = given.get("env")
    return {**given, "env": {"name": env.get("name")}} if isinstance(env, Mapping) else dict(given)
