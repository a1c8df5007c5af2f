"""Puts trajectories into one padded batch."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from hgrpo.credit.turnrd.model import TurnBatch


def padded(rows: Iterable[np.ndarray]) -> Tensor:
    """B rows [T_k, ...] of one type, padded with zeros at the end to [B, T, ...]."""
    return pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True)


def pad(turns: Sequence[np.ndarray], goals: Sequence[np.ndarray] | None) -> TurnBatch:
    """A float32 batch of embeddings [T_k, D], padded at the end, and of goals [D] if given."""
    mask = padded(np.ones(len(rows), bool) for rows in turns)
    stacked = None if goals is None else torch.from_numpy(np.stack(goals).astype(np.float32))
    return TurnBatch(padded(np.asarray(rows, np.float32) for rows in turns), mask, stacked)
