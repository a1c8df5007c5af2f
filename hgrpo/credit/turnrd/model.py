"""Defines, saves and loads TurnRD's model, a small transformer that decomposes a return over turns.

The model has two versions. The input is one embedding per turn. Padding is masked, so that the
output for a trajectory does not depend on other trajectories in the batch.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from hgrpo.atomic import write_json
from hgrpo.base_model.safetensors_file import check_checksum, write_tensors
from hgrpo.credit.turnrd.settings import ModelSettings, Settings
from hgrpo.errors import UserError

_QUERY_STD = 0.02
WEIGHTS, CARD = "model.safetensors", "model.json"


@dataclass(frozen=True)
class TurnBatch:
    """Padded trajectories.

    Attributes:
        turns: float32 [B, T, D], embedding of each turn.
        mask: bool [B, T], False in padding; every row has at least one turn.
        goals: float32 [B, D], embedding of each goal; None if the model does not use goals.
    """

    turns: Tensor
    mask: Tensor
    goals: Tensor | None = None


def padded(rows: Iterable[np.ndarray]) -> Tensor:
    """Stack B rows [T_k, ...] to [B, T, ...], with zeros as padding at the end."""
    return pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True)


def pad(turns: Sequence[np.ndarray], goals: Sequence[np.ndarray] | None) -> TurnBatch:
    """Make a float32 batch of trajectories.

    Args:
        turns: turn embeddings [T_k, D] of each trajectory; padded at the end.
        goals: goal embedding [D] of each trajectory, or None.
    """
    mask = padded(np.ones(len(rows), bool) for rows in turns)
    stacked = None if goals is None else torch.from_numpy(np.stack(goals).astype(np.float32))
    return TurnBatch(padded(np.asarray(rows, np.float32) for rows in turns), mask, stacked)


@dataclass(frozen=True)
class Decomposition:
    """The model's output for a batch.

    Attributes:
        alpha: float32 [B, T], weight of each turn, 0 in padding; each row sums to 1.
        returns: float32 [B], predicted return.
        values: float32 [B, T], value of each turn, 0 in padding; None without a value head.
        hidden: float32 [B, T, H], hidden state of each turn.
    """

    alpha: Tensor
    returns: Tensor
    values: Tensor | None
    hidden: Tensor


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax of scores [..., T] over entries where mask [..., T] is True; 0 elsewhere."""
    return scores.masked_fill(~mask, float("-inf")).softmax(-1).masked_fill(~mask, 0.0)


class _Encoder(nn.Module):
    """Projects the embeddings, adds learned positions and applies pre-norm transformer layers."""

    def __init__(self, settings: ModelSettings, width: int, causal: bool):
        super().__init__()
        self.project = nn.Linear(width, settings.hidden)
        self.positions = nn.Embedding(settings.max_turns, settings.hidden)
        layer = nn.TransformerEncoderLayer(
            settings.hidden,
            settings.heads,
            4 * settings.hidden,
            settings.dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.layers = nn.TransformerEncoder(layer, settings.layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(settings.hidden)
        self.causal = causal

    def forward(self, batch: TurnBatch) -> Tensor:
        length = batch.turns.shape[1]
        # Later turns use the embedding of the last learned position.
        index = torch.arange(length).clamp(max=self.positions.num_embeddings - 1)
        x = self.project(batch.turns) + self.positions(index)
        ahead = torch.ones(length, length, dtype=torch.bool).triu(1) if self.causal else None
        return self.norm(self.layers(x, mask=ahead, src_key_padding_mask=~batch.mask))


class TurnRD(nn.Module):
    """Base class of the model's two versions, which map a `TurnBatch` to a `Decomposition`."""

    encoder: _Encoder

    def measures(self) -> dict[str, float]:
        """Log entries about the model's weights."""
        return {}


class TurnRDV1(TurnRD):
    """A causal encoder. Alpha contains the attention weights of a learned query over the turns.

    The return is predicted from the attention's output. An optional head predicts values.
    """

    def __init__(self, settings: ModelSettings, width: int):
        super().__init__()
        self.encoder = _Encoder(settings, width, causal=True)
        self.query = nn.Parameter(torch.randn(1, 1, settings.hidden) * _QUERY_STD)
        self.attention = nn.MultiheadAttention(settings.hidden, settings.heads, batch_first=True)
        self.predict = nn.Linear(settings.hidden, 1)
        self.value = nn.Linear(settings.hidden, 1) if settings.value_head else None

    def forward(self, batch: TurnBatch) -> Decomposition:
        hidden = self.encoder(batch)
        query = self.query.expand(len(hidden), -1, -1)
        pooled, weights = self.attention(query, hidden, hidden, key_padding_mask=~batch.mask)
        alpha = weights[:, 0].masked_fill(~batch.mask, 0.0)
        alpha = alpha / alpha.sum(-1, keepdim=True)
        returns = self.predict(pooled[:, 0]).squeeze(-1)
        values = None
        if self.value is not None:
            values = self.value(hidden).squeeze(-1).masked_fill(~batch.mask, 0.0)
        return Decomposition(alpha, returns, values, hidden)

    def measures(self) -> dict[str, float]:
        """`cls_query_norm`: root mean square of the learned query, about 0.02 before training."""
        norm = float(self.query.detach().norm()) / self.query.shape[-1] ** 0.5
        return {"cls_query_norm": norm}


class TurnRDV2(TurnRD):
    """A bidirectional encoder with score and value heads, which predicts R as sum_t alpha_t v_t.

    alpha is the softmax of scores + prior. The prior increases linearly from 0 at the first turn to
    `progress_prior` at the last turn. With `film`, the input of both heads is scaled and shifted
    depending on the goal's embedding ("FiLM: Visual Reasoning with a General Conditioning Layer",
    https://arxiv.org/abs/1709.07871). The initial scale is 1, and the initial shift is 0.
    """

    def __init__(self, settings: ModelSettings, width: int):
        super().__init__()
        self.encoder = _Encoder(settings, width, causal=False)
        self.score = _head(settings.hidden)
        self.value = _head(settings.hidden)
        self.prior = settings.progress_prior
        self.film: nn.ModuleDict | None = None
        if settings.film:
            hidden = settings.hidden
            inputs = {"goal": width, "scale": hidden, "shift": hidden}
            self.film = nn.ModuleDict({name: nn.Linear(n, hidden) for name, n in inputs.items()})
            for name in ("scale", "shift"):
                nn.init.zeros_(self.film[name].weight)
                nn.init.zeros_(self.film[name].bias)

    def forward(self, batch: TurnBatch) -> Decomposition:
        """Decompose the return of each trajectory in the batch.

        Raises:
            ValueError: the model requires goals, but the batch has no goals.
        """
        hidden = self.encoder(batch)
        if self.film is not None:
            if batch.goals is None:
                raise ValueError("this model requires goals, but the batch has no goals")
            goal = self.film["goal"](batch.goals)
            scale, shift = self.film["scale"](goal), self.film["shift"](goal)
            hidden = (1 + scale[:, None]) * hidden + shift[:, None]
        last = (batch.mask.sum(-1, keepdim=True) - 1).clamp(min=1)
        slope = torch.arange(batch.mask.shape[1]) / last
        scores = self.score(hidden).squeeze(-1) + self.prior * slope
        alpha = masked_softmax(scores, batch.mask)
        values = self.value(hidden).squeeze(-1).masked_fill(~batch.mask, 0.0)
        return Decomposition(alpha, (alpha * values).sum(-1), values, hidden)


def _head(hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 1))


def build_model(settings: ModelSettings, width: int, seed: int) -> TurnRD:
    """Create a model for embeddings of width `width`, with random weights from `seed`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return {"v1": TurnRDV1, "v2": TurnRDV2}[settings.version](settings, width)


def save_model(
    model: TurnRD, settings: ModelSettings, width: int, metrics: dict, folder: Path
) -> None:
    """Write the weights, and a JSON file with `settings`, `width` and `metrics`."""
    write_tensors(model.state_dict(), folder / WEIGHTS)
    card = {"settings": settings.model_dump(mode="json"), "width": width, "metrics": metrics}
    write_json(folder / CARD, card)


def load_model(folder: Path, settings: Settings) -> TurnRD:
    """Load the model in `folder`, in evaluation mode.

    Raises:
        UserError: a file is missing, damaged or does not match its checksum, or the model was
            fitted with different model settings.
    """
    card_path, weights_path = folder / CARD, folder / WEIGHTS
    try:
        card = json.loads(card_path.read_bytes())
        check_checksum(weights_path)
        weights = load_file(weights_path)
    except FileNotFoundError as error:
        # Add the file name, which is missing in errors of the safetensors library.
        missing = error.filename or weights_path
        raise UserError(f"{missing}: not found; expected a fitted TurnRD in {folder}") from None
    except ValueError as error:
        raise UserError(f"{card_path}: the file is damaged ({error})") from None
    fitted = ModelSettings(**card["settings"])
    if fitted != settings.model:
        raise UserError(f"{card_path}: the model was fitted with different `model` settings")
    model = build_model(fitted, card["width"], 0)
    model.load_state_dict(weights)
    return model.eval()
