"""The policy: a causal language model with trainable weights, and its reference policy."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from hgrpo.agent.conversation import conversation_for
from hgrpo.base_model.safetensors_file import write_model, write_with_checksum
from hgrpo.policy.compatible import LORA_WEIGHTS, check_policy
from hgrpo.policy.precision import chosen_device
from hgrpo.policy.saved_weights import finite_weights, load_model
from hgrpo.policy.settings import ModelConfig

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

_TRAINED, _REFERENCE = "default", "reference"


class Policy:
    """A causal language model whose trainable part is saved as an adapter.

    With `adapt: lora`, the policy is a PEFT adapter and the reference policy is a second adapter on
    the same base. With `adapt: full`, the adapter holds all weights, and the reference policy is a
    second model. The model stays in eval mode during training, except with gradient checkpointing,
    for which transformers requires training mode. Dropout has no effect in either mode, because all
    dropout probabilities are 0.
    """

    def __init__(self, model: nn.Module, config: ModelConfig, base_folder: Path):
        self.device = chosen_device(config)
        self.model = model.to(self.device).eval()
        self.config = config
        self.base_folder = Path(base_folder)
        self.conversation = conversation_for(base_folder, config.system)
        self.tokenizer = self.conversation.tokenizer
        self.lora = config.adapt == "lora"
        self._reference: nn.Module | None = None
        if config.gradient_checkpointing:
            self._set_mode()
            model = self.causal_lm
            # The version of transformers that vLLM for GPUs requires has only the old name of this
            # method. In newer versions, the old name emits a warning.
            old = "gradient_checkpointing_enable"
            enable = getattr(model, "activation_checkpointing_enable", None) or getattr(model, old)
            enable({"use_reentrant": False})

    def _set_mode(self) -> None:
        self.model.train(self.config.gradient_checkpointing)

    @property
    def causal_lm(self) -> "PreTrainedModel":
        """The transformers model; with LoRA it includes the adapter's layers."""
        return self.model.get_base_model() if self.lora else self.model

    @property
    def architecture(self) -> "PretrainedConfig":
        return self.causal_lm.config

    @property
    def trainable(self) -> list[tuple[str, nn.Parameter]]:
        """The (name, tensor) pairs of the trainable tensors, in a fixed order."""
        return [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]

    @contextmanager
    def reference(self) -> Iterator["PreTrainedModel"]:
        """Context manager that yields the reference policy's model; requires `load_reference`."""
        if not self.lora:
            yield self._reference
            return
        self.model.set_adapter(_REFERENCE)
        try:
            yield self.causal_lm
        finally:
            # Undo the call above, which made the reference trainable and froze the trained adapter.
            self.model.set_adapter(_TRAINED)

    @contextmanager
    def untrained(self) -> Iterator["PreTrainedModel | None"]:
        """Yield the untrained policy's model, which `check_sync` uses for comparison.

        With LoRA, this is the base without the adapter. With full tuning, it is the reference
        policy, or None if no reference policy is loaded.
        """
        with self.model.disable_adapter() if self.lora else nullcontext():
            yield self.causal_lm if self.lora else self._reference

    def load_reference(self, adapter: Path) -> None:
        """Make the policy saved in `adapter` the reference policy.

        Raises:
            UserError: see `check_policy`, `finite_weights` and, with full tuning, `load_model`.
        """
        check_policy(self.config, self.base_folder, adapter)
        finite_weights(adapter, self.lora)
        if self.lora:
            self.model.load_adapter(str(adapter), adapter_name=_REFERENCE, is_trainable=False)
            self.model.set_adapter(_TRAINED)
            # PEFT switches the model to eval mode when it loads a frozen adapter.
            self._set_mode()
        else:
            reference = load_model(Path(adapter), self.config).to(self.device)
            self._reference = reference.eval().requires_grad_(False)

    def save_adapter(self, folder: Path) -> None:
        """Write the adapter to `folder`.

        With LoRA, PEFT's files are written. With full tuning, config.json and all weights are
        written. The file with the weights contains a checksum, which is verified on every load.
        """
        folder.mkdir(parents=True, exist_ok=True)
        if not self.lora:
            write_model(self.model, folder)
            return
        # PEFT replaces a list of twenty or more targets with a shorter equivalent. Save the
        # original list, because `check_lora` compares the saved list with the study's settings.
        targets = sorted(set(self.config.lora.targets))
        self.model.peft_config[_TRAINED].target_modules = targets
        weights = folder / LORA_WEIGHTS
        try:
            self.model.save_pretrained(str(folder), selected_adapters=[_TRAINED])
        except SafetensorError as error:
            # safetensors reports a full disk as a SafetensorError.
            raise OSError(f"{weights}: {error}") from None
        (folder / "README.md").unlink(missing_ok=True)
        write_with_checksum(weights.read_bytes(), weights)

    def trained_state(self) -> dict[str, Tensor]:
        """Copies of the trainable tensors."""
        return {name: tensor.detach().clone() for name, tensor in self.trainable}

    def load_trained_state(self, state: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, tensor in self.trainable:
                tensor.copy_(state[name])

    def merged_weights(self) -> Mapping[str, Tensor]:
        """The weights of the base architecture with the adapter merged.

        Keys are tensor names of the base model. Adapted tensors are computed on access, in float32,
        because small updates would be lost in lower precision. Other tensors are not copied.
        """
        if not self.lora:
            return {name: tensor.detach() for name, tensor in self.model.state_dict().items()}
        return _Merged(self.causal_lm)


class _Merged(Mapping[str, Tensor]):
    """Merges a tensor when it is accessed, so that merged tensors are not all in memory at once."""

    def __init__(self, model: "PreTrainedModel"):
        from peft.tuners.lora import LoraLayer

        self._adapted = {
            f"{name}.weight": module
            for name, module in model.named_modules()
            if isinstance(module, LoraLayer)
        }
        self._tensors = {
            name.replace(".base_layer", ""): tensor.detach()
            for name, tensor in model.state_dict().items()
            if ".lora_" not in name
        }

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._tensors[name]
        if name in self._adapted:
            return tensor.float() + self._adapted[name].get_delta_weight(_TRAINED).detach().float()
        return tensor

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)
