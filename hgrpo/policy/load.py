"""Loads a policy from its base and its adapter, for training or for inference only."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from hgrpo.agent.conversation import conversation_for
from hgrpo.base_model.architecture import PlainConfig, played_architecture
from hgrpo.base_model.safetensors_file import read_header
from hgrpo.errors import UserError
from hgrpo.games.streams import key
from hgrpo.policy.compatible import LORA_WEIGHTS, check_adapter, check_policy
from hgrpo.policy.head import check_head
from hgrpo.policy.policy import Policy
from hgrpo.policy.precision import autocast_dtype, cast, chosen_device
from hgrpo.policy.saved_weights import finite_weights, load_model
from hgrpo.policy.settings import LoraConfig, ModelConfig

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from hgrpo.agent.chat import ChatConversation
    from hgrpo.agent.conversation import Conversation

# Suffixes of the names of a LoRA adapter's matrices.
_MATRICES = (".lora_A.weight", ".lora_B.weight")


@dataclass(frozen=True)
class SavedPolicy:
    """Weights of a policy trained with `adapt: full`, for inference only, without a torch model."""

    architecture: "PlainConfig | PretrainedConfig"
    conversation: "Conversation | ChatConversation"
    weights: dict[str, Tensor]
    device: torch.device

    def merged_weights(self) -> dict[str, Tensor]:
        return self.weights


def load_player(config: ModelConfig, base: Path, adapter: Path) -> Policy | SavedPolicy:
    """Load a policy for inference only.

    Raises:
        UserError: see `load_policy`.
    """
    if config.adapt == "lora":
        return load_policy(config, base, adapter)
    check_policy(config, base, adapter)
    weights = finite_weights(adapter, lora=False)
    architecture = played_architecture(Path(adapter), config.max_length)
    conversation = conversation_for(base, config.system)
    return SavedPolicy(architecture, conversation, weights, chosen_device(config))


def load_policy(
    config: ModelConfig, base: Path, adapter: Path | None = None, seed: int = 0
) -> Policy:
    """Load a policy for training: the one in `adapter`, or a new one if `adapter` is None.

    With LoRA, a new policy has a new adapter on the base model. Its A matrices are drawn from the
    random stream ("lora-init", seed), and its B matrices are zero.

    Raises:
        UserError: see `check_policy` and `check_head`. Also, a saved weight is not finite; a tensor
            is missing or does not match config.json or the adapter's base; a name in `lora.targets`
            is not a module of the model; or the model does not support `attention`.
    """
    model = _load_whole(config, base, adapter)
    if config.adapt == "lora":
        model = _with_lora(model, config.lora, adapter, seed)
    policy = Policy(model, config, base)
    with cast(policy.device, autocast_dtype(config, policy.device)):
        check_head(policy.causal_lm)
    return policy


def _load_whole(config: ModelConfig, base: Path, adapter: Path | None) -> "PreTrainedModel":
    """Check all files, then load the full model (`adapt: full`) or the base model (LoRA)."""
    if config.adapt == "full":
        folder = Path(adapter or base)
        check_policy(config, base, folder)
        finite_weights(folder, lora=False)
        return load_model(folder, config)
    # The base stage has already checked the base for non-finite values.
    check_adapter(base, lora=False)
    if adapter is not None:
        check_policy(config, base, adapter)
        finite_weights(adapter, lora=True)
    return load_model(Path(base), config)


def _with_lora(
    model: "PreTrainedModel", settings: LoraConfig, adapter: Path | None, seed: int
) -> nn.Module:
    # This import is local, because importing PEFT takes seconds and full tuning does not use PEFT.
    import peft

    if adapter is not None:
        check_tensors(model, settings, adapter)
        return peft.PeftModel.from_pretrained(model, str(adapter), is_trainable=True)
    _check_targets(model, settings.targets)
    lora = peft.LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        target_modules=list(settings.targets),
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
    )
    # Seed torch's global generator, which PEFT uses. Its state may differ between processes.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(key("lora-init", seed) % 2**63)
        return peft.get_peft_model(model, lora)


def check_tensors(model: "PreTrainedModel", settings: LoraConfig, adapter: Path) -> None:
    """Raise UserError unless the adapter has both matrices of each target in the right shapes.

    PEFT only warns about a missing matrix and keeps its random initialisation.
    """
    path = adapter / LORA_WEIGHTS
    shapes = {name: entry["shape"] for name, entry in read_header(path).items()}
    targets = tuple(f".{target}" for target in settings.targets)
    for name, module in model.named_modules():
        if not isinstance(module, nn.Linear) or not f".{name}".endswith(targets):
            continue
        for part, shape in (
            ("A", [settings.rank, module.in_features]),
            ("B", [module.out_features, settings.rank]),
        ):
            tensor = f"base_model.model.{name}.lora_{part}.weight"
            saved = shapes.get(tensor)
            if saved != shape:
                fault = "is missing" if saved is None else f"has shape {saved}"
                raise UserError(f"{path}: tensor {tensor!r} {fault}; the base requires {shape}")
            del shapes[tensor]
    if unknown := [name for name in sorted(shapes) if name.endswith(_MATRICES)]:
        raise UserError(f"{path}: tensor {unknown[0]!r} does not belong to a module of the base")


def _check_targets(model: "PreTrainedModel", targets: Iterable[str]) -> None:
    """Raise UserError unless every target is the name suffix of a module with a weight matrix."""
    matrices = [
        name.removesuffix(".weight")
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if name.endswith(".weight") and parameter.ndim == 2
    ]
    for target in targets:
        if not any(f".{name}".endswith(f".{target}") for name in matrices):
            known = ", ".join(sorted({name.rpartition(".")[2] for name in matrices}))
            raise UserError(f"lora.targets: {target!r}: no such module; known: {known}")
