"""The rollout engine that a study asks for."""

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
) -> RolloutEngine:
    """An engine that holds the policy's weights.

    Args:
        config: which engine, and its settings.
        policy: what plays.
        capacity: conversations that may be open at once.
        sampling: how replies are drawn.
        end_id: token that closes a reply.

    Raises:
        UserError: the engine is not installed, or cannot run this model.
    """
    if config.kind == "vllm":
        from hgrpo.rollout.vllm_engine import VllmEngine

        return VllmEngine(policy, capacity, sampling, end_id, config)
    from hgrpo.rollout.torch_engine import TorchEngine

    return TorchEngine(policy, capacity, sampling, end_id)
