"""Language models for a bandit task, in which the action is the next token after a context.

The model is a small character model, which is pretrained here with cross-entropy, or a causal
language model from Hugging Face (extra `lm-bandit`). All seeds share the module. Each seed has its
own weights, and seeds are evaluated one after the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call

from hgrpo.errors import UserError, one_line
from hgrpo.sandbox import draws
from hgrpo.sandbox.learner import Adam, clip_rows
from hgrpo.sandbox.nets.transformer import Transformer
from hgrpo.sandbox.policies import taken
from hgrpo.sandbox.rl.settings import RlSettings

_STEPS, _ROWS, _LR, _LARGEST_NORM = 150, 16, 3e-3, 1.0


@dataclass(frozen=True)
class NextToken:
    """A model's initial weights [1, P], and its function `logits`.

    `logits` maps weights [S, P] and contexts, int64 [S, R, C], to logits [S, R, V].
    """

    first: Tensor
    vocabulary: int
    logits: Callable[[Tensor, Tensor], Tensor]

    def init(self, seeds: Sequence[int], name: str = "policy") -> Tensor:
        """The initial weights, repeated for each seed."""
        return self.first.repeat(len(seeds), 1)


def encode(text: str) -> tuple[Tensor, int]:
    """Encode a text as character codes, int64 [n]; also return the vocabulary size."""
    known = sorted(set(text))
    code = {character: index for index, character in enumerate(known)}
    return torch.tensor([code[character] for character in text]), len(known)


def char_model(settings: RlSettings, codes: Tensor, vocabulary: int) -> NextToken:
    """A transformer, pretrained on random windows of the text.

    The result depends on the text and on the configured size, but not on the seeds of the run.
    """
    context = settings.context_len
    sizes = (settings.d_model, settings.nhead, settings.num_layers)
    net = Transformer(vocabulary, context, *sizes)
    weights = net.init((0,), "char")
    adam, active = Adam(weights, _LR), torch.ones(1, dtype=torch.bool)
    for step in range(_STEPS):
        begins = draws.integers((0,), "init", ("char", step), (_ROWS,), len(codes) - context)
        tokens, last = windows(codes, begins, context)
        labels = torch.cat([tokens[..., 1:], last], -1)
        leaf = weights.clone().requires_grad_()
        loss = -taken(net.logits(leaf, tokens).log_softmax(-1), labels).mean()
        gradient, _ = clip_rows(torch.autograd.grad(loss, leaf)[0], _LARGEST_NORM)
        adam.step(gradient, active)

    def score(weights: Tensor, contexts: Tensor) -> Tensor:
        return net.logits(weights, contexts, last=1).squeeze(-2)

    return NextToken(weights, vocabulary, score)


def windows(codes: Tensor, begins: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Contexts [S, N, size] that start at `begins` [S, N], and the next codes [S, N, 1]."""
    places = begins.unsqueeze(-1) + torch.arange(size + 1)
    tokens = codes[places]
    return tokens[..., :-1], tokens[..., -1:]


def hf_model(name: str) -> tuple[Callable[[str], Tensor], NextToken]:
    """Return a function that converts a text to token ids, int64 [n], and the model in float32.

    Args:
        name: a folder, or a name on the hub.

    Raises:
        UserError: transformers is not installed, or the model is not found.
    """
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError:
        raise UserError(
            f"--model_name: {name}: this model requires transformers (extra `lm-bandit`); "
            "alternatively, use `char`"
        ) from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise UserError(
            f"--model_name: {name}: not found locally or on the hub; give a model's folder, or "
            f"`char` for a small model without files ({one_line(error)[:100]}...)"
        ) from None
    model.to(torch.get_default_device()).eval().requires_grad_(False)
    parts = dict(model.named_parameters())
    sizes = [each.numel() for each in parts.values()]

    def score(weights: Tensor, contexts: Tensor) -> Tensor:
        return torch.stack([one(*pair) for pair in zip(weights, contexts, strict=True)])

    def one(row: Tensor, contexts: Tensor) -> Tensor:
        pieces = zip(parts.items(), row.split(sizes), strict=True)
        parameters = {key: piece.view_as(part) for (key, part), piece in pieces}
        return functional_call(model, parameters, (contexts,)).logits[:, -1]

    def encode(text: str) -> Tensor:
        return torch.tensor(tokenizer(text, verbose=False)["input_ids"])

    first = torch.cat([each.detach().flatten() for each in parts.values()]).unsqueeze(0)
    return encode, NextToken(first, model.config.vocab_size, score)
