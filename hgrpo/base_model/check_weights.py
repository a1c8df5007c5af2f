"""Whether a base's weights are those that its config asks for, all of them and finite."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig

from hgrpo.agent.tokenizer import load_tokenizer
from hgrpo.base_model.safetensors_file import INDEX, read_header
from hgrpo.errors import UserError

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

_FLOATS = ("F64", "F32", "F16", "BF16")
_CHUNK = 1 << 24
# Buffers that transformers once saved and passes over now.
_OLD_BUFFERS = (r"rotary_emb\.inv_freq$", r"(^|\.)position_ids$")


def architecture(folder: Path) -> "PretrainedConfig":
    """The transformers config in `folder`.

    Raises:
        UserError: naming the file: it is of no model that transformers knows.
    """
    try:
        # Unless told, transformers asks on the terminal whether to run a model's own code.
        return AutoConfig.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # each model's config raises what it likes
        reason = " ".join(str(error).split())
        raise UserError(f"{folder / 'config.json'}: not a model's config ({reason})") from None


def check_base_weights(folder: Path, parts: list[Path]) -> None:
    """See whether the weights in `parts` are all that the config in `folder` asks for.

    Names, shapes and types are compared with the model built without memory; then every value is
    read once. Of a family that transformers renames tensors of, names are left to its loader.

    Raises:
        UserError: naming file and tensor: it is missing, of another shape or type, not the
            model's, or not finite, or tied to another that differs; or the config is of no causal
            language model, or of one with fewer embeddings than the tokenizer has tokens.
    """
    model = _without_memory(folder)
    _check_vocabulary(folder, len(model.get_input_embeddings().weight))
    if not _renamed(model):
        _compare(folder, parts, model)
    for part in parts:
        _check_finite(part)
    _check_tied(parts, model.all_tied_weights_keys)


def _without_memory(folder: Path) -> "PreTrainedModel":
    # Importing the models takes seconds.
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoModelForCausalLM

    config, path = architecture(folder), folder / "config.json"
    # An encoder has a causal class too, for whoever sets `is_decoder`.
    reads_ahead = config.is_encoder_decoder or not getattr(config, "is_decoder", True)
    if reads_ahead or type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise UserError(f"{path}: model_type: {config.model_type!r} is no causal language model")
    try:
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(
                config, attn_implementation="eager", trust_remote_code=False
            )
    except Exception as error:  # each model raises what it likes
        reason = " ".join(str(error).split())
        raise UserError(f"{path}: no model can be built from it ({reason})") from None


def _check_vocabulary(folder: Path, rows: int) -> None:
    known = load_tokenizer(folder).get_vocab(with_added_tokens=True)
    for token, number in known.items():
        if number >= rows:
            raise UserError(
                f"{folder / 'tokenizer.json'}: {token!r} is token {number}, but the model has "
                f"embeddings for {rows} (vocab_size in config.json)"
            )


def _renamed(model: "PreTrainedModel") -> bool:
    from transformers.conversion_mapping import get_model_conversion_mapping

    return bool(get_model_conversion_mapping(model, add_legacy=False))


def _compare(folder: Path, parts: list[Path], model: "PreTrainedModel") -> None:
    expected = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    ignored = re.compile(
        "|".join([*_OLD_BUFFERS, *(model._keys_to_ignore_on_load_unexpected or ())])
    )
    found = set()
    for part in parts:
        for name, entry in read_header(part)[0].items():
            place = f"{part}: tensor {name!r}"
            found.add(name)
            if name not in expected:
                if ignored.search(name):
                    continue
                raise UserError(f"{place} is not one of the model that config.json describes")
            if entry["shape"] != expected[name]:
                raise UserError(
                    f"{place} has shape {entry['shape']}; config.json asks for {expected[name]}"
                )
            if entry["dtype"] not in _FLOATS:
                raise UserError(f"{place} has type {entry['dtype']}; training needs plain floats")
    # A tied head may be left out, and be the embeddings.
    tied = {name for name, other in model.all_tied_weights_keys.items() if other in found}
    missing = [name for name in expected if name not in found | tied]
    if missing:
        place = parts[0] if len(parts) == 1 else folder / INDEX
        raise UserError(
            f"{place}: tensor {missing[0]!r} is missing ({len(missing)} of the {len(expected)} "
            "that config.json asks for)"
        )


def _check_finite(part: Path) -> None:
    header, _ = read_header(part)
    try:
        with safe_open(part, "pt") as file:
            for name, entry in header.items():
                if entry["dtype"] in _FLOATS:
                    values = file.get_tensor(name).flatten()
                    if not all(chunk.isfinite().all() for chunk in values.split(_CHUNK)):
                        raise UserError(f"{part}: tensor {name!r} has values that are not finite")
    except SafetensorError as error:
        raise UserError(f"{part}: corrupted ({error})") from None


def _check_tied(parts: list[Path], tied: Mapping[str, str]) -> None:
    """UserError where two tensors that are one by the config differ: which one counts is open."""
    places = {name: part for part in parts for name in read_header(part)[0]}

    def read(name: str) -> torch.Tensor:
        with safe_open(places[name], "pt") as file:
            return file.get_tensor(name)

    for name, other in tied.items():
        if {name, other} <= places.keys() and not torch.equal(read(name), read(other)):
            raise UserError(
                f"{places[name]}: tensor {name!r} differs from {other!r}, though config.json has "
                "tie_word_embeddings"
            )
