"""Checks that the weights of a base match its config and are finite."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open

from hgrpo.agent.tokenizer import load_tokenizer
from hgrpo.base_model.architecture import architecture
from hgrpo.base_model.safetensors_file import read_header
from hgrpo.errors import UserError, one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_FLOATS = ("F64", "F32", "F16", "BF16")
_CHUNK = 1 << 24
# Patterns of names of buffers that old versions of transformers saved; loading ignores them.
_OLD_BUFFERS = (r"rotary_emb\.inv_freq$", r"(^|\.)position_ids$")


def check_base_weights(folder: Path, parts: list[Path]) -> None:
    """Check that the weights in the files `parts` match the config in `folder` and are finite.

    Names and shapes are compared with a model on torch's "meta" device, which takes no memory. This
    comparison is skipped for models whose tensors transformers renames on loading. Then every value
    is read once.

    Raises:
        UserError: a tensor is missing, unexpected, not finite, not of a float type, of the wrong
            shape, or different from the tensor it is tied to; the config is not that of a causal
            language model; a token of the tokenizer has no embedding; or a file is damaged.
    """
    from transformers.conversion_mapping import get_model_conversion_mapping

    model = _on_meta(folder)
    _check_vocabulary(folder, len(model.get_input_embeddings().weight))
    if not get_model_conversion_mapping(model, add_legacy=False):
        _compare(folder, parts, model)
    for part in parts:
        _check_finite(part)
    _check_tied(parts, model.all_tied_weights_keys)


def _on_meta(folder: Path) -> "PreTrainedModel":
    # Imported here because importing transformers takes seconds.
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoModelForCausalLM

    config, path = architecture(folder), folder / "config.json"
    # In transformers, encoders like BERT also have a class for causal language modelling, but their
    # attention is bidirectional unless `is_decoder` is set.
    bidirectional = config.is_encoder_decoder or not config.to_dict().get("is_decoder", True)
    if bidirectional or type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise UserError(f"{path}: model_type: {config.model_type!r} is not a causal language model")
    try:
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(
                config, attn_implementation="eager", trust_remote_code=False
            )
    except Exception as error:  # the code of a model may raise anything
        raise UserError(
            f"{path}: cannot build a model from this config ({one_line(error)})"
        ) from None


def _check_vocabulary(folder: Path, rows: int) -> None:
    known = load_tokenizer(folder).get_vocab(with_added_tokens=True)
    for token, number in known.items():
        if number >= rows:
            raise UserError(
                f"{folder / 'tokenizer.json'}: {token!r} is token {number}, but the model has "
                f"only {rows} embeddings (vocab_size in config.json)"
            )


def _compare(folder: Path, parts: list[Path], model: "PreTrainedModel") -> None:
    expected = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    ignored = "|".join([*_OLD_BUFFERS, *(model._keys_to_ignore_on_load_unexpected or ())])
    stored = set()
    for part in parts:
        for name, entry in read_header(part).items():
            stored.add(name)
            if name not in expected and re.search(ignored, name):
                continue
            if entry["shape"] != expected.get(name) or entry["dtype"] not in _FLOATS:
                raise UserError(
                    f"{part}: tensor {name!r} has shape {entry['shape']} and type "
                    f"{entry['dtype']}; expected by config.json: "
                    f"{expected.get(name, 'no such tensor')}; allowed types: {', '.join(_FLOATS)}"
                )
    # A file may omit the output layer if the model ties this layer to the embeddings.
    tied = {name for name, other in model.all_tied_weights_keys.items() if other in stored}
    missing = [name for name in expected if name not in stored | tied]
    if missing:
        raise UserError(
            f"{folder}: tensor {missing[0]!r} is missing ({len(missing)} of the {len(expected)} "
            "tensors required by config.json are missing)"
        )


def _check_finite(part: Path) -> None:
    header = read_header(part)
    try:
        with safe_open(part, "pt") as file:
            for name, entry in header.items():
                if entry["dtype"] in _FLOATS:
                    values = file.get_tensor(name).flatten()
                    if not all(chunk.isfinite().all() for chunk in values.split(_CHUNK)):
                        raise UserError(f"{part}: tensor {name!r} has non-finite values")
    except SafetensorError as error:
        raise UserError(f"{part}: the file is damaged ({error})") from None


def _check_tied(parts: list[Path], tied: Mapping[str, str]) -> None:
    places = {name: part for part in parts for name in read_header(part)}

    def read(name: str) -> torch.Tensor:
        with safe_open(places[name], "pt") as file:
            return file.get_tensor(name)

    for name, other in tied.items():
        if {name, other} <= places.keys() and not torch.equal(read(name), read(other)):
            raise UserError(
                f"{places[name]}: tensor {name!r} differs from {other!r}, but config.json sets "
                "`tie_word_embeddings`, which requires equal tensors"
            )
