"""Settings shared by the stages that play games, and a collector for continuations."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.archive import unpacked
from hgrpo.config.strict import Strict
from hgrpo.games.environment import EnvSettings
from hgrpo.games.kinds import load
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.settings import EngineConfig
from hgrpo.stages.sections import Env

if TYPE_CHECKING:
    from hgrpo.games.base import TextEnv
    from hgrpo.policy.policy import Policy
    from hgrpo.rollout.collector import Collector
    from hgrpo.study.study import Study


class Playing(Strict):
    """Environment, model and engine of the rollouts."""

    env: Env
    model: ModelConfig
    engine: EngineConfig = EngineConfig()


def playing(study: "Study") -> dict:
    """A study's settings for `Playing`; the environment's section `expert` is omitted."""
    return {
        "env": study.env.model_dump(mode="json", exclude={"expert"}),
        "model": study.model.model_dump(mode="json"),
        "engine": study.config.engine.model_dump(mode="json"),
    }


def env_maker(env: EnvSettings, assets: Path) -> "Callable[[], TextEnv]":
    """A function that creates an environment for the tasks written by the stage assets."""
    return load(env.name).factory(env, unpacked(assets / "tasks.tar.gz"))


def collector(settings: Playing, play: Mapping, policy: "Policy", assets: Path) -> "Collector":
    """A collector with the same settings as in an arm's training rounds.

    Args:
        play: the part of the arm's training settings with the keys `PLAY`.
        assets: folder of the stage assets.
    """
    from hgrpo.rollout.collector import Collector
    from hgrpo.rollout.engine import Sampling

    sampling = Sampling(play["temperature"], play["max_action_tokens"])
    engine = settings.engine.make(policy, play["in_flight"], sampling)
    make_env, cap = env_maker(settings.env, assets), settings.env.turn_cap
    return Collector(engine, policy.conversation, make_env, cap, sampling.max_tokens)
