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
    """An engine that holds the policy's weights.

    Args:
        config: which engine, and its settings.
        policy: its weights are played.
        capacity: conversations that may be open at once.
        sampling: how replies are drawn.
        end_id: the token that closes a reply.
        embeddings: whether replies are wanted with embeddings; not every engine gives them.

    Raises:
        UserError: the engine is not installed, or it cannot run this model.
    """
    return config.engine.make(config.declared, policy, capacity, sampling, end_id, embeddings)
