"""The environment a study's config asks for."""

from collections.abc import Callable
from pathlib import Path

from hgrpo.envs.alfworld.env import AlfworldEnv
from hgrpo.envs.base import TextEnv
from hgrpo.envs.kinds import EnvConfig
from hgrpo.envs.webshop.env import WebshopEnv


def env_factory(config: EnvConfig, assets: Path) -> Callable[[], TextEnv]:
    """A function that makes one environment over the tasks in `assets`."""
    if config.name == "alfworld":
        return lambda: AlfworldEnv(assets, config.engine)
    return lambda: WebshopEnv(
        assets,
        config.observation == "text_rich",
        config.repeat_instruction,
        config.show_attributes,
    )
