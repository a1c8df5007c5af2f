"""Settings of the stages in which a policy plays."""

from typing import TYPE_CHECKING

from hgrpo.config.strict import Strict
from hgrpo.policy.settings import ModelConfig
from hgrpo.rollout.settings import EngineConfig
from hgrpo.stages.sections import Env

if TYPE_CHECKING:
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
