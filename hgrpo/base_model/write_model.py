"""Writing a whole model as a Hugging Face folder."""

from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import save as serialise

from hgrpo.base_model.safetensors_file import WEIGHTS, write_with_checksum

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def write_model(model: "PreTrainedModel", folder: Path) -> None:
    """Write config.json and model.safetensors, with a checksum; tied tensors are written once."""
    model.config.save_pretrained(str(folder))
    weights = {
        name: tensor.detach().contiguous()
        for name, tensor in model.state_dict().items()
        if name not in model.all_tied_weights_keys
    }
    content = serialise(weights, metadata={"format": "pt"})
    write_with_checksum(content, folder / WEIGHTS)
