"""The policy: a base model with what training moves, its reference, and its merged weights."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as serialise
from torch import Tensor, nn
from transformers.utils import logging

from hgrpo.agent.choose_conversation import conversation_for
from hgrpo.base_model.foreign_code import plain_config
from hgrpo.base_model.safetensors_file import WEIGHTS, check_checksum, write_with_checksum
from hgrpo.errors import UserError
from hgrpo.policy.compatible import architecture_of, check_architecture, check_lora
from hgrpo.policy.precision import autocast_dtype, cast, chosen_device
from hgrpo.policy.settings import ModelConfig
from hgrpo.streams import key

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from hgrpo.agent.chat import ChatConversation
    from hgrpo.agent.conversation import Conversation

_TRAINED, _REFERENCE = "default", "reference"
_LORA_WEIGHTS = "adapter_model.safetensors"
# Tokens that logits are looked at behind; how far apart two ways to them may be, as a share of the
# largest.
_TRIED, _APART = 8, 1e-3


class Policy:
    """A causal language model whose trainable part is saved as an adapter.

    With `adapt: lora` the adapter is PEFT's; the reference policy is a second adapter on the same
    base. With `adapt: full` the adapter holds every weight, and the reference is a second model.
    Dropout is off: every rate is 0, and the model is in eval mode, where gradients flow all the
    same. (With gradient checkpointing it is in training mode, as transformers wants it then.)
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
            self.model.train()
            self.causal_lm.activation_checkpointing_enable({"use_reentrant": False})

    @property
    def causal_lm(self) -> "PreTrainedModel":
        """The transformers model, adapter layers in place."""
        return self.model.get_base_model() if self.lora else self.model

    @property
    def architecture(self) -> "PretrainedConfig":
        """The transformers config of the base."""
        return self.causal_lm.config

    @property
    def trainable(self) -> list[tuple[str, nn.Parameter]]:
        """Names and tensors that training moves, in a fixed order."""
        return [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]

    @contextmanager
    def reference(self) -> Iterator["PreTrainedModel"]:
        """Within the block, the fixed reference policy's model.

        Raises:
            RuntimeError: no reference was loaded.
        """
        if self.lora:
            if _REFERENCE not in self.model.peft_config:
                raise RuntimeError("the policy has no reference adapter")
            self.model.set_adapter(_REFERENCE)
            try:
                yield self.causal_lm
            finally:
                # set_adapter also flips requires_grad, so the trained adapter gets it back here.
                self.model.set_adapter(_TRAINED)
        else:
            if self._reference is None:
                raise RuntimeError("the policy has no reference model")
            yield self._reference

    @contextmanager
    def untrained(self) -> Iterator["PreTrainedModel | None"]:
        """Within the block, what an engine would play whose weights never changed.

        That is the base without its adapter, or with full tuning the reference policy; None where
        there is none.
        """
        if not self.lora:
            yield self._reference
            return
        with self.model.disable_adapter():
            yield self.causal_lm

    def load_reference(self, adapter: Path) -> None:
        """Fix the adapter in `adapter` as the reference policy.

        Raises:
            UserError: as `check_policy`, or its weights are not all finite.
        """
        check_policy(self.config, self.base_folder, adapter)
        _finite_weights(adapter, self.lora)
        if self.lora:
            self.model.load_adapter(str(adapter), adapter_name=_REFERENCE, is_trainable=False)
            self.model.set_adapter(_TRAINED)
        else:
            reference = _load_full(Path(adapter), self.config).to(self.device)
            self._reference = reference.eval().requires_grad_(False)

    def save_adapter(self, folder: Path) -> None:
        """Write the trained part to `folder`: PEFT's format, or a full Hugging Face folder.

        The weights' file holds a checksum of itself, which is looked at whenever it is loaded.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if self.lora:
            # Of twenty or more, PEFT itself keeps as few as mean the same for this model.
            targets = sorted(set(self.config.lora.targets))
            self.model.peft_config[_TRAINED].target_modules = targets
            try:
                self.model.save_pretrained(str(folder), selected_adapters=[_TRAINED])
            except SafetensorError as error:
                # It reports a full disk as an error of its own.
                raise OSError(f"{folder / _LORA_WEIGHTS}: {error}") from None
            (folder / "README.md").unlink(missing_ok=True)
            weights = folder / _LORA_WEIGHTS
            write_with_checksum(weights.read_bytes(), weights)
        else:
            self.model.config.save_pretrained(str(folder))
            tied = set(self.model._tied_weights_keys or ())
            weights = {
                name: tensor.detach().contiguous()
                for name, tensor in self.model.state_dict().items()
                if name not in tied or not self.model.config.tie_word_embeddings
            }
            content = serialise(weights, metadata={"format": "pt"})
            write_with_checksum(content, folder / WEIGHTS)

    def trained_state(self) -> dict[str, Tensor]:
        """Copies of the trainable tensors."""
        return {name: tensor.detach().clone() for name, tensor in self.trainable}

    def load_trained_state(self, state: dict[str, Tensor]) -> None:
        """Put back what `trained_state` returned."""
        with torch.no_grad():
            for name, tensor in self.trainable:
                tensor.copy_(state[name])

    def merged_weights(self) -> Mapping[str, Tensor]:
        """Plain weights of the base architecture with the adapter folded in, each when it is read.

        Keys are the base model's own names. What is adapted is float32, since small updates would
        be lost in less; what is not is shared, not copied.
        """
        if not self.lora:
            return {name: tensor.detach() for name, tensor in self.model.state_dict().items()}
        return _Merged(self.causal_lm)


class _Merged(Mapping[str, Tensor]):
    """See `Policy.merged_weights`: all of them at once would be the adapted base once more."""

    def __init__(self, model: "PreTrainedModel"):
        self._modules = dict(model.named_modules())
        self._tensors = {
            name.replace(".base_layer", ""): tensor.detach()
            for name, tensor in model.state_dict().items()
            if ".lora_" not in name
        }

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._tensors[name]
        owner = self._modules[name.rpartition(".")[0]]
        if name.endswith(".weight") and hasattr(owner, "get_delta_weight"):
            return tensor.float() + owner.get_delta_weight(_TRAINED).detach().float()
        return tensor

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


@dataclass(frozen=True)
class SavedPolicy:
    """What playing needs of a fully tuned policy, read without building its model."""

    architecture: "PretrainedConfig"
    conversation: "Conversation | ChatConversation"
    weights: dict[str, Tensor]
    device: torch.device

    def merged_weights(self) -> dict[str, Tensor]:
        """Plain weights under the base model's own names."""
        return self.weights


def load_player(config: ModelConfig, base: Path, adapter: Path) -> Policy | SavedPolicy:
    """A policy to play and not to train.

    Raises:
        UserError: as `load_policy`.
    """
    if config.adapt == "lora":
        return load_policy(config, base, adapter)
    check_policy(config, base, adapter)
    weights = _finite_weights(adapter, lora=False)
    architecture = architecture_of(Path(adapter), config)
    conversation = conversation_for(base, config.system)
    return SavedPolicy(architecture, conversation, weights, chosen_device(config))


def load_policy(
    config: ModelConfig, base: Path, adapter: Path | None = None, seed: int = 0
) -> Policy:
    """Load the base and, on top of it, an adapter; without one, a fresh trainable part.

    A fresh LoRA adapter's random half is that of the stream ("lora-init", seed).

    Raises:
        UserError: as `check_policy`; values of what is trained are not all finite; a tensor of the
            base is missing, or not what its config asks for; `lora.targets` or `attention` cannot
            be had; the model caps, scales or shifts its logits.
    """
    if config.adapt == "full":
        folder = Path(adapter or base)
        check_policy(config, base, folder)
        _finite_weights(folder, lora=False)
        return _checked(Policy(_load_full(folder, config), config, base))
    # The base stage has looked at every value; once more would be gigabytes a round.
    check_adapter(base, lora=False)
    if adapter is not None:
        check_policy(config, base, adapter)
        _finite_weights(adapter, lora=True)
    # Importing peft takes seconds, and full tuning has no use for it.
    import peft

    model = _load_full(Path(base), config)
    if adapter is None:
        _check_targets(model, config.lora.targets)
        lora = peft.LoraConfig(
            r=config.lora.rank,
            lora_alpha=config.lora.alpha,
            target_modules=list(config.lora.targets),
            lora_dropout=0.0,
            task_type="CAUSAL_LM",
        )
        # PEFT draws from torch's own generator, which every process seeds as it likes.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(key("lora-init", seed) % 2**63)
            return _checked(Policy(peft.get_peft_model(model, lora), config, base))
    model = peft.PeftModel.from_pretrained(model, str(adapter), is_trainable=True)
    return _checked(Policy(model, config, base))


@torch.no_grad()
def _checked(policy: Policy) -> Policy:
    """The policy, unless its model makes other logits than its head makes of the last states.

    Some families cap or scale them, or add a bias; log-probs of training would lack that.
    """
    model = policy.causal_lm
    head = model.lm_head.weight
    tokens = torch.arange(_TRIED, device=policy.device)[None] % len(head)
    with cast(policy.device, autocast_dtype(policy.config, policy.device)):
        logits = model(input_ids=tokens, use_cache=False).logits
        states = model.model(input_ids=tokens, use_cache=False).last_hidden_state
        products = F.linear(states, head)
    apart, largest = (logits - products).abs().max(), products.abs().max()
    if apart > largest * max(_APART, 2 * torch.finfo(products.dtype).eps):
        raise UserError(
            f"model_type: {model.config.model_type!r}: its logits are not its head's products with "
            f"the last layer's states ({apart:.2g} apart), as training takes them to be"
        )
    return policy


def _load_full(folder: Path, settings: ModelConfig) -> "PreTrainedModel":
    """The model in a folder that was checked."""
    # Importing the models takes seconds, and playing has no use for them.
    from transformers import AutoModelForCausalLM

    config = architecture_of(folder, settings)
    try:
        with _without_report():
            model, loaded = AutoModelForCausalLM.from_pretrained(
                str(folder),
                config=config,
                dtype=getattr(torch, settings.base_dtype),
                attn_implementation=settings.attention,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                # Named below; otherwise, they end in a traceback.
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
    except SafetensorError as error:
        raise UserError(f"{folder / WEIGHTS}: corrupted ({error})") from None
    except (ImportError, ValueError) as error:
        if settings.attention != "flash_attention_2":
            raise
        reason = " ".join(str(error).split())
        raise UserError(f"attention: {settings.attention!r}: {reason}") from None
    _check_loaded(loaded, folder / WEIGHTS)
    return model


@contextmanager
def _without_report() -> Iterator[None]:
    """Within the block, transformers does not print a table of tensors that do not fit."""
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)


def _check_loaded(loaded: dict[str, Iterable], path: Path) -> None:
    """UserError unless every tensor of a model came out of the file, and every one there did."""
    for problem, said in (
        ("missing_keys", "is missing"),
        ("mismatched_keys", "has another shape than config.json asks for"),
        ("unexpected_keys", "is not one of the model that config.json describes"),
    ):
        # Of a mismatch the shapes come with the name.
        names = sorted(each if isinstance(each, str) else each[0] for each in loaded[problem])
        if names:
            raise UserError(f"{path}: tensor {names[0]!r} {said}")


def _check_targets(model: "PreTrainedModel", targets: Iterable[str]) -> None:
    """UserError unless each of `lora.targets` is the end of a name of a matrix's module."""
    matrices = [
        name
        for name, module in model.named_modules()
        if getattr(getattr(module, "weight", None), "ndim", 0) == 2
    ]
    for target in targets:
        if not any(f".{name}".endswith(f".{target}") for name in matrices):
            known = ", ".join(sorted({name.rpartition(".")[2] for name in matrices}))
            raise UserError(f"lora.targets: {target!r}: the model has no such module, but {known}")


def check_policy(config: ModelConfig, base: Path, adapter: Path) -> None:
    """See whether an adapter can be loaded on this base by these settings, without loading it.

    Raises:
        UserError: as `check_adapter`, of the adapter; or its config is of another model than the
            base's, or of other LoRA settings than `config` has.
    """
    base, adapter = Path(base), Path(adapter)
    lora = config.adapt == "lora"
    check_adapter(adapter, lora)
    if lora:
        check_lora(adapter, config.lora)
    else:
        check_architecture(adapter, base, config)


def check_adapter(folder: Path, lora: bool) -> None:
    """See whether a policy's folder can be loaded, without loading it.

    Its weights must match their checksum, where they have one (`check_checksum` says which do).

    Raises:
        UserError: naming the file: it is missing, corrupted, does not match its checksum, is of
            the other kind of adaptation, or asks for code that is not this project's.
    """
    folder = Path(folder)
    config_name, wanted = _files(lora)
    for name in (config_name, wanted):
        if not (folder / name).is_file():
            raise UserError(
                f"{folder / name}: missing; is this a {'LoRA' if lora else 'full'} adapter?"
            )
    plain_config(folder / config_name, str(folder / config_name))
    check_checksum(folder / wanted)


def _files(lora: bool) -> tuple[str, str]:
    """Names of a policy's config and of its weights."""
    return ("adapter_config.json", _LORA_WEIGHTS) if lora else ("config.json", WEIGHTS)


def _finite_weights(folder: Path, lora: bool) -> dict[str, Tensor]:
    """The weights in a folder that was checked; UserError unless every value is finite."""
    path = Path(folder) / _files(lora)[1]
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise UserError(f"{path}: corrupted ({error})") from None
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise UserError(f"{path}: tensor {name!r} has values that are not finite")
    return tensors
