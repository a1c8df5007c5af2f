"""The environment a study's config asks for."""

from collections.abc import Callable
from pathlib import Path

from hgrpo.config.env import EnvConfig
from hgrpo.envs.alfworld.env import AlfworldEnv
from hgrpo.envs.base import TextEnv


def env_factory(config: EnvConfig, assets: Path) -> Callable[[], TextEnv]:
    """A function that makes one environment over the games in `assets`."""
    return lambda: AlfworldEnv(assets, config.engine)
