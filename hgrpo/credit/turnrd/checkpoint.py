"""Saves and loads a fitted TurnRD: weights, and a card with settings, input width and metrics."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from hgrpo.base_model.safetensors_file import check_checksum, write_tensors
from hgrpo.credit.turnrd.model import TurnRD, build_model
from hgrpo.credit.turnrd.settings import ModelSettings, Settings
from hgrpo.errors import UserError

WEIGHTS, CARD = "model.safetensors", "model.json"


def save_model(
    model: TurnRD, settings: ModelSettings, width: int, metrics: dict, folder: Path
) -> None:
    """Write the weights and the card; `width` is D, the width of a turn's embedding."""
    write_tensors(model.state_dict(), folder / WEIGHTS)
    card = {"settings": settings.model_dump(mode="json"), "width": width, "metrics": metrics}
    (folder / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def load_model(folder: Path, settings: Settings) -> TurnRD:
    """Load the model in `folder`, in evaluation mode.

    Raises:
        UserError: a file is missing, damaged or does not match its checksum, a weight is not
            finite, or the model was fitted with other model settings.
    """
    card_path, weights_path = folder / CARD, folder / WEIGHTS
    try:
        card = json.loads(card_path.read_bytes())
        check_checksum(weights_path)
        weights = load_file(weights_path)
    except FileNotFoundError as error:
        # An error of the safetensors library has no file name.
        missing = error.filename or weights_path
        raise UserError(f"{missing}: missing; is {folder} a fitted TurnRD?") from None
    except ValueError as error:
        raise UserError(f"{card_path}: damaged ({error})") from None
    fitted = ModelSettings(**card["settings"])
    if fitted != settings.model:
        raise UserError(f"{card_path}: the model was fitted with other settings than the method's")
    model = build_model(fitted, card["width"], 0)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise UserError(f"{weights_path}: not the weights of its card ({error})") from None
    if not all(torch.isfinite(tensor).all() for tensor in weights.values()):
        raise UserError(f"{weights_path}: weights that are not finite")
    return model.eval()
