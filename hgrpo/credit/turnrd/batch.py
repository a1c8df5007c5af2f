"""Trajectories as one padded batch."""

from collections.abc import Sequence

import numpy as np
import torch

from hgrpo.credit.turnrd.model import TurnBatch


def pad(turns: Sequence[np.ndarray], goals: Sequence[np.ndarray] | None) -> TurnBatch:
    """Right-padded batch of embeddings [T_k, D] and, if given, goals [D]; all float32."""
    longest = max(len(rows) for rows in turns)
    padded = torch.zeros(len(turns), longest, turns[0].shape[1])
    mask = torch.zeros(len(turns), longest, dtype=torch.bool)
    for row, embeddings in enumerate(turns):
        padded[row, : len(embeddings)] = torch.from_numpy(np.asarray(embeddings, np.float32))
        mask[row, : len(embeddings)] = True
    stacked = None if goals is None else torch.from_numpy(np.stack(goals).astype(np.float32))
    return TurnBatch(padded, mask, stacked)
