"""TurnRD: a small transformer that says how a return is spread over the turns that earned it.

Both versions read one embedding a turn. Positions count from the first turn and nothing depends on
the padding, so a trajectory's weights do not depend on what shares its batch.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hgrpo.credit.turnrd.settings import ModelSettings

_QUERY_STD = 0.02


@dataclass(frozen=True)
class TurnBatch:
    """Padded trajectories.

    Attributes:
        turns: float32 [B, T, D], embedding of each turn.
        mask: bool [B, T], True where there is a turn; turns come first, every row has one.
        goals: float32 [B, D], embedding of the goal; None where no model needs it.
    """

    turns: Tensor
    mask: Tensor
    goals: Tensor | None = None


@dataclass(frozen=True)
class Decomposition:
    """What the model says of a batch.

    Attributes:
        alpha: float32 [B, T], weight of each turn; sums to 1 over a row, 0 in the padding.
        returns: float32 [B], predicted return.
        values: float32 [B, T], value of each turn, 0 in the padding; None without a value head.
        hidden: float32 [B, T, H], the turns as the heads see them.
    """

    alpha: Tensor
    returns: Tensor
    values: Tensor | None
    hidden: Tensor


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension where `mask` is True, 0 elsewhere."""
    return scores.masked_fill(~mask, float("-inf")).softmax(-1).masked_fill(~mask, 0.0)


class _Encoder(nn.Module):
    """Projection, learnt positions and pre-norm layers."""

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
        # Later turns than there are positions share the last one.
        index = torch.arange(length).clamp(max=self.positions.num_embeddings - 1)
        x = self.project(batch.turns) + self.positions(index)
        ahead = torch.ones(length, length, dtype=torch.bool).triu(1) if self.causal else None
        return self.norm(self.layers(x, mask=ahead, src_key_padding_mask=~batch.mask))


class TurnRDV1(nn.Module):
    """Causal encoder; a learnt query's attention over the turns is alpha.

    The attended mean of the turns predicts the return; an optional head predicts values.
    """

    def __init__(self, settings: ModelSettings, width: int):
        super().__init__()
        self.encoder = _Encoder(settings, width, causal=True)
        self.query = nn.Parameter(torch.randn(1, 1, settings.hidden) * _QUERY_STD)
        self.attention = nn.MultiheadAttention(settings.hidden, settings.heads, batch_first=True)
        self.predict = nn.Linear(settings.hidden, 1)
        self.value = nn.Linear(settings.hidden, 1) if settings.value_head else None

    def forward(self, batch: TurnBatch) -> Decomposition:
        """See `Decomposition`."""
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

    @property
    def query_norm(self) -> float:
        """Norm of the query over the root of its width; 0.02 at the start."""
        return float(self.query.detach().norm()) / self.query.shape[-1] ** 0.5


class TurnRDV2(nn.Module):
    """Bidirectional encoder with a score and a value head; the return is sum_t alpha_t v_t.

    Scores start with a slope over the turns, from 0 at the first to `progress_prior` at the
    trajectory's own last turn. With FiLM the goal scales and shifts what both heads read; its maps
    start at zero, where it changes nothing.
    """

    def __init__(self, settings: ModelSettings, width: int):
        super().__init__()
        self.encoder = _Encoder(settings, width, causal=False)
        self.score = _head(settings.hidden)
        self.value = _head(settings.hidden)
        self.prior = settings.progress_prior
        self.film: nn.ModuleDict | None = None
        if settings.film:
            self.film = nn.ModuleDict(
                {
                    "goal": nn.Linear(width, settings.hidden),
                    "scale": nn.Linear(settings.hidden, settings.hidden),
                    "shift": nn.Linear(settings.hidden, settings.hidden),
                }
            )
            for name in ("scale", "shift"):
                nn.init.zeros_(self.film[name].weight)
                nn.init.zeros_(self.film[name].bias)

    def forward(self, batch: TurnBatch) -> Decomposition:
        """See `Decomposition`.

        Raises:
            ValueError: the model is conditioned on goals and the batch has none.
        """
        hidden = self.encoder(batch)
        if self.film is not None:
            if batch.goals is None:
                raise ValueError("this model is conditioned on goals; the batch has none")
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


def build_model(settings: ModelSettings, width: int, seed: int) -> TurnRDV1 | TurnRDV2:
    """A freshly initialised model for embeddings of `width`, the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return {"v1": TurnRDV1, "v2": TurnRDV2}[settings.version](settings, width)
