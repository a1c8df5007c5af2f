"""Makes the rollout engine that a study asks for."""

from hgrpo.policy.load import SavedPolicy
from hgrpo.policy.policy import Policy
from hgrpo.rollout.engine import RolloutEngine, Sampling
from hgrpo.rollout.settings import EngineConfig


def make_engine(
    config: EngineConfig,
    policy: Policy | SavedPolicy,
    capacity: int,
    sampling: Sampling,
    end_id: int,
    embeddings: bool = False,
) -> RolloutEngine:
    """An engine that holds the policy's weights; arguments and errors as `EngineKind.make`."""
    return config.engine.make(config.declared, policy, capacity, sampling, end_id, embeddings)
