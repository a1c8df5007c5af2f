"""A causal language model of Hugging Face as the policy of the bandit; extra `lm-bandit`.

All seeds share the module; each has its own row of weights, and is scored by itself.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call

from hgrpo.errors import UserError, one_line
from hgrpo.sandbox.rl.tasks.char_model import NextToken


def hf_model(name: str) -> tuple[Callable[[str], Tensor], NextToken]:
    """Its tokenizer, from a text to int64 [n], and the model itself in float32.

    Args:
        name: a folder, or a name on the hub.

    Raises:
        UserError: transformers is not installed, or there is no such model.
    """
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError:
        raise UserError(
            f"--model_name: {name}: transformers is not installed; it comes with the extra "
            "`lm-bandit`. The model `char` needs none"
        ) from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise UserError(
            f"--model_name: {name}: no such model here, and the hub sent none; give a model's "
            f"folder, or `char` for a small model that needs no files ({one_line(error)[:100]}...)"
        ) from None
    model.to(torch.get_default_device()).eval().requires_grad_(False)
    parts = dict(model.named_parameters())
    sizes = [each.numel() for each in parts.values()]

    def score(weights: Tensor, contexts: Tensor) -> Tensor:
        return torch.stack([one(*pair) for pair in zip(weights, contexts, strict=True)])

    def one(row: Tensor, contexts: Tensor) -> Tensor:
        pieces = zip(parts.items(), row.split(sizes), strict=True)
        own = {key: piece.view_as(part) for (key, part), piece in pieces}
        return functional_call(model, own, (contexts,)).logits[:, -1]

    def encode(text: str) -> Tensor:
        return torch.tensor(tokenizer(text, verbose=False)["input_ids"])

    first = torch.cat([each.detach().flatten() for each in parts.values()]).unsqueeze(0)
    return encode, NextToken(first, model.config.vocab_size, score)
