"""A language model as the net of a bandit, whose action is the token that follows a context.

The one made here is a small character model, trained on the spot by cross-entropy. The other is a
causal language model of Hugging Face (extra `lm-bandit`). All seeds share its module; each has its
own row of weights, and is scored by itself.
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
    """The first weights [1, P] of a model, and its logits [S, R, V] of contexts int64 [S, R, C].

    `logits` takes weights [S, P] and contexts.
    """

    first: Tensor
    vocabulary: int
    logits: Callable[[Tensor, Tensor], Tensor]

    def init(self, seeds: Sequence[int], name: str = "policy") -> Tensor:
        """The first weights, once for each seed."""
        return self.first.repeat(len(seeds), 1)


def encode(text: str) -> tuple[Tensor, int]:
    """The text as codes of its characters, int64 [n], and how many characters there are."""
    known = sorted(set(text))
    code = {character: index for index, character in enumerate(known)}
    return torch.tensor([code[character] for character in text]), len(known)


def char_model(settings: RlSettings, codes: Tensor, vocabulary: int) -> NextToken:
    """A transformer of the run's size that was trained on every character of drawn windows.

    It is the same for the same text and sizes, whatever the seeds of the run are.
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
    """Contexts [S, N, size] that begin at `begins` [S, N], and the codes after them [S, N, 1]."""
    places = begins.unsqueeze(-1) + torch.arange(size + 1)
    tokens = codes[places]
    return tokens[..., :-1], tokens[..., -1:]


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
        parameters = {key: piece.view_as(part) for (key, part), piece in pieces}
        return functional_call(model, parameters, (contexts,)).logits[:, -1]

    def encode(text: str) -> Tensor:
        return torch.tensor(tokenizer(text, verbose=False)["input_ids"])

    first = torch.cat([each.detach().flatten() for each in parts.values()]).unsqueeze(0)
    return encode, NextToken(first, model.config.vocab_size, score)
