"""Logits of chosen states, made by the model's own `forward`.

Every causal language model multiplies its decoder's last states by the head's matrix. Some families
then add a bias, scale the logits or cap them, and only their `forward` knows how. So `forward` runs
here with the decoder replaced by one that returns given states, and with the head's product in
float32. No list of families is needed.
"""

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgrpo.errors import UserError, one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.modeling_outputs import ModelOutput

# How long the probe of `check_head` is, and how large an error it allows relative to the largest
# logit. Each of a head's few operations may round by half an eps of a coarser type.
_PROBE_LENGTH, _TOLERANCE, _ROUNDINGS = 8, 1e-3, 4


class Head:
    """Turns states into logits as the model does: its head and all that `forward` does after it."""

    def __init__(self, model: "PreTrainedModel", outputs: type["ModelOutput"]):
        self._model, self._outputs = model, outputs

    @property
    def vocabulary(self) -> int:
        return self._model.get_output_embeddings().weight.shape[0]

    def __call__(self, states: Tensor) -> Tensor:
        """Logits [N, vocabulary] of states [N, hidden size]; both float32, also under autocast."""
        decoded = self._outputs(last_hidden_state=states[None])
        with torch.autocast(states.device.type, enabled=False):
            return type(self._model).forward(_Stand(self._model, decoded)).logits[0]


def decode(model: "PreTrainedModel", token_ids: Tensor) -> tuple[Tensor, Head]:
    """The decoder's last states [B, L, hidden size] of tokens [B, L], and the head to go on with.

    `model` is a transformers causal language model. Its head always uses the model's present
    weights.
    """
    outputs = model.base_model(input_ids=token_ids, use_cache=False)
    return outputs.last_hidden_state, Head(model, type(outputs))


@torch.no_grad()
def check_head(model: "PreTrainedModel") -> None:
    """Compare the logits made here with those of the whole model, on a few tokens.

    Raises:
        UserError: the logits differ, or `forward` does not run without its decoder.
    """
    kind = f"model_type: {model.config.model_type!r}"
    head = model.get_output_embeddings()
    if not isinstance(head, nn.Linear):
        raise UserError(f"{kind}: its head is {type(head).__name__}; training needs a linear one")
    tokens = torch.arange(_PROBE_LENGTH, device=head.weight.device)[None] % len(head.weight)
    expected = model(input_ids=tokens, use_cache=False).logits[0]
    try:
        states, own = decode(model, tokens)
        found = own(states[0].float())
    except Exception as error:  # each model raises what it likes
        raise UserError(
            f"{kind}: training cannot make its logits from its last states ({one_line(error)})"
        ) from None
    apart, largest = (found - expected).abs().max(), expected.abs().max()
    if not apart <= largest * max(_TOLERANCE, _ROUNDINGS * torch.finfo(expected.dtype).eps):
        raise UserError(
            f"{kind}: its logits do not follow from its last states alone ({apart:.2g} apart, of "
            f"{largest:.2g}), and training makes them from those"
        )


class _Stand:
    """Stands in for the model as `self` of its `forward`.

    The decoder returns the given states, and the head computes in float32. Every other attribute is
    the model's own.
    """

    def __init__(self, model: "PreTrainedModel", decoded: "ModelOutput"):
        self._model, self._decoded = model, decoded

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        if value is self._model.base_model:
            return lambda *_, **__: self._decoded
        if value is self._model.get_output_embeddings():
            return _Float32Linear(value)
        return value


class _Float32Linear:
    """A linear layer that multiplies in float32; coarser types would distort importance ratios."""

    def __init__(self, layer: nn.Linear):
        self.weight = layer.weight.float()
        self.bias = None if layer.bias is None else layer.bias.float()

    def __call__(self, states: Tensor) -> Tensor:
        return F.linear(states, self.weight, self.bias)
