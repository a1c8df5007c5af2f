"""A synthetic task with a known answer: one turn of each trajectory, the needle, makes the return.

Turn embeddings h are Gaussian. The needle's first number is raised, which marks it. The return is
R = sigmoid(w . h_needle) - 1/2 with a fixed random direction w over the other numbers. A
decomposition that works therefore puts alpha on the needle and predicts R.
"""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.stats import pearsonr

from hgrpo.credit.replay import ReplayRow
from hgrpo.credit.turnrd.model import TurnRD, pad
from hgrpo.games.streams import generator

WIDTH, MARK, SHARPNESS = 16, 3.0, 4.0
TURNS = (4, 12)


def needle_task(count: int, seed: int, part: str) -> tuple[list[ReplayRow], np.ndarray]:
    """Trajectories, and the turn of each one's needle; w depends on the seed, not on the part."""
    direction = generator("needle-direction", seed).standard_normal(WIDTH - 1)
    direction *= SHARPNESS / np.linalg.norm(direction)
    rng = generator("needle", seed, part)
    rows, needles = [], []
    for index in range(count):
        length = int(rng.integers(TURNS[0], TURNS[1] + 1))
        embeddings = rng.standard_normal((length, WIDTH))
        needle = int(rng.integers(length))
        embeddings[needle, 0] += MARK
        env_return = 1 / (1 + np.exp(-embeddings[needle, 1:] @ direction)) - 0.5
        progress = np.zeros(length)
        progress[needle] = env_return
        vectors = embeddings.astype("<f2")
        rows.append(
            ReplayRow(1, 0, f"needle-{index}", 0, vectors, None, env_return, progress, None)
        )
        needles.append(needle)
    return rows, np.array(needles)


@torch.no_grad()
def recovery(model: TurnRD, rows: Sequence[ReplayRow], needles: np.ndarray) -> dict[str, float]:
    """How well a fitted model finds the needles.

    Returns:
        alpha_at_needle and uniform, the mean weights there of the model and of equal weights;
        argmax_accuracy; return_corr (Pearson); return_mse.
    """
    model.eval()
    output = model(pad([row.embeddings for row in rows], None))
    places = torch.from_numpy(needles)
    returns = np.array([row.env_return for row in rows])
    predicted = output.returns.numpy()
    return {
        "alpha_at_needle": float(output.alpha[torch.arange(len(rows)), places].mean()),
        "uniform": float(np.mean([1 / len(row.progress) for row in rows])),
        "argmax_accuracy": float((output.alpha.argmax(-1) == places).double().mean()),
        "return_corr": float(pearsonr(predicted, returns).statistic),
        "return_mse": float(np.mean((predicted - returns) ** 2)),
    }
