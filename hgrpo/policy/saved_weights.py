"""Loads the weights of a saved policy, either as a dict of tensors or as a whole model."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from hgrpo.base_model.architecture import capped_architecture
from hgrpo.base_model.safetensors_file import WEIGHTS
from hgrpo.errors import UserError, one_line
from hgrpo.policy.compatible import policy_files
from hgrpo.policy.precision import base_dtype
from hgrpo.policy.settings import ModelConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def finite_weights(folder: Path, lora: bool) -> dict[str, Tensor]:
    """Read the weights of a saved policy that `check_adapter` has accepted.

    Raises:
        UserError: the file is damaged, or a value is not finite.
    """
    path = Path(folder) / policy_files(lora)[1]
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise UserError(f"{path}: the file is damaged ({error})") from None
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise UserError(f"{path}: tensor {name!r} has non-finite values")
    return tensors


def load_model(folder: Path, settings: ModelConfig) -> "PreTrainedModel":
    """Load the whole model in a folder that `check_adapter` has accepted.

    Raises:
        UserError: the weights file is damaged, a tensor is missing or does not match config.json,
            or FlashAttention is configured but not installed or not supported by the model.
    """
    # This import is local, because it takes seconds and `SavedPolicy` does not use transformers.
    from transformers import AutoModelForCausalLM

    config = capped_architecture(folder, settings.max_length)
    try:
        with _without_report():
            model, loaded = AutoModelForCausalLM.from_pretrained(
                str(folder),
                config=config,
                dtype=base_dtype(settings),
                attn_implementation=settings.attention,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                # Wrong shapes are reported by `_check_loaded` instead of transformers.
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
    except SafetensorError as error:
        raise UserError(f"{folder / WEIGHTS}: the file is damaged ({error})") from None
    except (ImportError, ValueError) as error:
        if settings.attention != "flash_attention_2":
            raise
        raise UserError(f"attention: {settings.attention!r}: {one_line(error)}") from None
    _check_loaded(loaded, folder / WEIGHTS)
    return model


@contextmanager
def _without_report() -> Iterator[None]:
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)


def _check_loaded(loaded: dict[str, Iterable], path: Path) -> None:
    for problem, text in (
        ("missing_keys", "is missing"),
        ("mismatched_keys", "has a different shape than config.json requires"),
        ("unexpected_keys", "does not belong to the model in config.json"),
    ):
        # Entries of `mismatched_keys` are tuples of the name and the two shapes.
        names = sorted(each if isinstance(each, str) else each[0] for each in loaded[problem])
        if names:
            raise UserError(f"{path}: tensor {names[0]!r} {text}")
