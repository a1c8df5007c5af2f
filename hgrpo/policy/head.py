"""Computes logits from the last hidden states by running the model's own `forward`.

In some model families, `forward` changes the logits after the head: it adds a bias, rescales them
or caps them. To avoid a special case per family, `forward` itself is run here. Its decoder is
replaced by a stub that returns the given hidden states, and its head computes in float32.
"""

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hgrpo.errors import UserError, one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.modeling_outputs import ModelOutput

# `check_head` compares the logits of `_PROBE_LENGTH` tokens. The tolerance, relative to the largest
# logit, is `_TOLERANCE` or `_ROUNDINGS` times the dtype's eps, whichever is larger. The head
# consists of few operations, each with a rounding error of at most half an eps.
_PROBE_LENGTH, _TOLERANCE, _ROUNDINGS = 8, 1e-3, 4


class Head:
    """Maps last hidden states to logits in float32, as `forward` does after the decoder."""

    def __init__(self, model: "PreTrainedModel", outputs: type["ModelOutput"]):
        self._model, self._outputs = model, outputs

    @property
    def vocabulary(self) -> int:
        return self._model.get_output_embeddings().weight.shape[0]

    def __call__(self, states: Tensor) -> Tensor:
        """Logits [N, vocabulary] of states [N, hidden size]; both float32, even under autocast."""
        decoded = self._outputs(last_hidden_state=states[None])
        with torch.autocast(states.device.type, enabled=False):
            return type(self._model).forward(_Stand(self._model, decoded)).logits[0]


def decode(model: "PreTrainedModel", token_ids: Tensor) -> tuple[Tensor, Head]:
    """Last hidden states [B, L, hidden size] of tokens [B, L], and the `Head` for their logits.

    `model` is a transformers causal language model. The `Head` always uses the model's current
    weights.
    """
    outputs = model.base_model(input_ids=token_ids, use_cache=False)
    return outputs.last_hidden_state, Head(model, type(outputs))


@torch.no_grad()
def check_head(model: "PreTrainedModel") -> None:
    """Check on a few tokens that `Head` computes the same logits as the whole model.

    Raises:
        UserError: the head is not a linear layer, the model cannot compute logits from given hidden
            states, or the logits differ.
    """
    kind = f"model_type: {model.config.model_type!r}"
    head = model.get_output_embeddings()
    if not isinstance(head, nn.Linear):
        raise UserError(
            f"{kind}: the head is {type(head).__name__}; training requires a linear head"
        )
    tokens = torch.arange(_PROBE_LENGTH, device=head.weight.device)[None] % len(head.weight)
    expected = model(input_ids=tokens, use_cache=False).logits[0]
    try:
        states, compute = decode(model, tokens)
        logits = compute(states[0].float())
    except Exception as error:  # the code of a model may raise anything
        raise UserError(
            f"{kind}: cannot compute logits from the last hidden states ({one_line(error)})"
        ) from None
    apart, largest = (logits - expected).abs().max(), expected.abs().max()
    if not apart <= largest * max(_TOLERANCE, _ROUNDINGS * torch.finfo(expected.dtype).eps):
        raise UserError(
            f"{kind}: unsupported, because its logits are not a function of the last hidden states "
            f"alone (recomputed logits differ by {apart:.2g}; the largest logit is {largest:.2g})"
        )


class _Stand:
    """A proxy that is passed to the model's `forward` as `self`.

    Its decoder returns given hidden states and its head computes in float32. All other attributes
    are forwarded to the model.
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
    def __init__(self, layer: nn.Linear):
        self.weight = layer.weight.float()
        self.bias = None if layer.bias is None else layer.bias.float()

    def __call__(self, states: Tensor) -> Tensor:
        return F.linear(states, self.weight, self.bias)
