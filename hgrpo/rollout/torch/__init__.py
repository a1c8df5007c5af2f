"""The default engine, written in PyTorch, for models with the Qwen2 or Llama architecture."""

from typing import TYPE_CHECKING

from pydantic import Field

from hgrpo.config.strict import Strict
from hgrpo.errors import UserError
from hgrpo.rollout.engine_kind import EngineKind

if TYPE_CHECKING:
    from transformers import PretrainedConfig

    from hgrpo.policy.load import SavedPolicy
    from hgrpo.policy.policy import Policy
    from hgrpo.rollout.engine import Sampling
    from hgrpo.rollout.torch.engine import TorchEngine


class Settings(Strict):
    """Keys besides `kind: torch`."""

    compiled: bool = Field(
        False,
        description="whether attention uses a numba kernel, which is faster, runs on CPU only, and "
        "gives the same results up to rounding",
    )


class TorchKind(EngineKind):
    """Plug-in for `TorchEngine`."""

    Settings = Settings
    plays_saved_weights = True

    def check_playable(self, config: "PretrainedConfig") -> None:
        from hgrpo.rollout.torch.decoder import check_supported

        try:
            check_supported(config)
        except UserError as error:
            raise UserError(f"{error}; try `engine: {{kind: vllm}}` in the study") from None

    def make(
        self,
        settings: Settings,
        policy: "Policy | SavedPolicy",
        capacity: int,
        sampling: "Sampling",
        embeddings: bool,
    ) -> "TorchEngine":
        from hgrpo.rollout.torch.engine import TorchEngine

        return TorchEngine(policy, capacity, sampling, embeddings, settings.compiled)


ENGINE = TorchKind()
