"""Settings of the vLLM engine."""

from typing import Literal

from pydantic import Field

from hgrpo.config.strict import Strict


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
