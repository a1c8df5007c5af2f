"""Settings of the stages in which a policy plays, and the collector with which it plays on."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hgrpo.config.strict import Strict
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.settings import EngineConfig
from hgrpo.stages.sections import Env

if TYPE_CHECKING:
    from hgrpo.games.base import TextEnv
    from hgrpo.policy.policy import Policy
    from hgrpo.rollout.collector import Collector
    from hgrpo.study.study import Study


class Playing(Strict):
    """The environment, model and engine with which a policy plays."""

    env: Env
    model: ModelConfig
    engine: EngineConfig = EngineConfig()


def playing(study: "Study") -> dict:
    """The values for `Playing` from a study, without the environment's expert."""
    return {
        "env": study.env.model_dump(mode="json", exclude={"expert"}),
        "model": study.model.model_dump(mode="json"),
        "engine": study.config.engine.model_dump(mode="json"),
    }


def collector(
    settings: Playing, play: Mapping, policy: "Policy", make_env: "Callable[[], TextEnv]"
) -> "Collector":
    """Plays as the training rounds of an arm do.

    Args:
        play: the keys `PLAY` of the arm's training settings.
    """
    from hgrpo.rollout.collector import Collector
    from hgrpo.rollout.engine import Sampling

    sampling = Sampling(play["temperature"], play["max_action_tokens"])
    engine = settings.engine.make(policy, play["in_flight"], sampling)
    cap = settings.env.turn_cap
    return Collector(engine, policy.conversation, make_env, cap, sampling.max_tokens)
