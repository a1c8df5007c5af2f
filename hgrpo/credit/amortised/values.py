"""A linear value of the moments before turns, by ridge regression, and the credit that it gives.

The penalty is chosen on held-out tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save

from hgrpo.atomic import write_json
from hgrpo.base_model.safetensors_file import check_checksum, write_with_checksum
from hgrpo.credit import counterfactual
from hgrpo.credit.amortised.settings import Settings
from hgrpo.credit.base import Context, CreditAssigner, Group
from hgrpo.credit.prompt_states import prompt_states
from hgrpo.errors import UserError
from hgrpo.trajectories.trajectory import Trajectory

WEIGHTS, CARD = "model.safetensors", "model.json"
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, np.inf)


@dataclass(frozen=True)
class Values:
    """V(x) = intercept + (x - mean) @ slope, for states x of width D.

    Attributes:
        mean, slope: float64 [D].
    """

    intercept: float
    mean: np.ndarray
    slope: np.ndarray

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """Values [N] of states [N, D]."""
        return self.intercept + (np.asarray(states, dtype=np.float64) - self.mean) @ self.slope


def ridge(states: np.ndarray, values: np.ndarray, weights: np.ndarray, penalty: float) -> Values:
    """The slope that minimises the weighted mean squared error + penalty * |slope * deviation|^2.

    States are standardised, so the penalty has no unit. An infinite penalty gives the mean value.

    Args:
        states: [N, D], N at least 1.
        values, weights: [N]; the weights are positive.
    """
    share = weights / weights.sum()
    mean, intercept = share @ states, float(share @ values)
    centred = states - mean
    deviation = np.sqrt(share @ centred**2)
    used = np.ptp(states, axis=0) > 0
    slope = np.zeros(states.shape[1])
    if np.isfinite(penalty) and used.any():
        scaled = centred[:, used] / deviation[used]
        square = (scaled * share[:, None]).T @ scaled + penalty * np.eye(int(used.sum()))
        cross = scaled.T @ (share * (values - intercept))
        slope[used] = np.linalg.solve(square, cross) / deviation[used]
    return Values(intercept, mean, slope)


def losses(
    training: tuple[np.ndarray, np.ndarray, np.ndarray],
    validation: tuple[np.ndarray, np.ndarray, np.ndarray],
    penalties: Sequence[float] = PENALTIES,
) -> list[float]:
    """Weighted mean squared error on `validation` of each penalty's fit on `training`.

    Both are (states [N, D], values [N], weights [N]).
    """
    states, values, weights = validation
    return [
        float(np.average((ridge(*training, penalty)(states) - values) ** 2, weights=weights))
        for penalty in penalties
    ]


def save_values(fitted: Values, metrics: dict, folder: Path) -> None:
    """Write the weights, with a checksum, and a card with the metrics."""
    arrays = {
        "intercept": np.array([fitted.intercept]),
        "mean": fitted.mean,
        "slope": fitted.slope,
    }
    write_with_checksum(save(arrays, metadata={"format": "np"}), folder / WEIGHTS)
    card = {"width": len(fitted.mean), "metrics": metrics}
    write_json(folder / CARD, card)


def load_values(folder: Path) -> Values:
    """The values that `save_values` wrote.

    Raises:
        UserError: the file is missing, damaged, or holds something else.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        raise UserError(f"{path}: missing; is {folder} a fit of amortised counterfactuals?")
    check_checksum(path)
    found = load_file(path)
    if found.keys() != {"intercept", "mean", "slope"}:
        raise UserError(f"{path}: not a fit of amortised counterfactuals")
    return Values(float(found["intercept"][0]), found["mean"], found["slope"])


class AmortisedCredit(CreditAssigner):
    """R less the value before the turn.

    The value of a drawn turn is the mean return of its own continuations. Elsewhere it is that of
    the fit after the previous round. Before there is a fit, the other turns get 0.
    """

    def __init__(self, settings: Settings, context: Context):
        wanted = settings.counterfactual
        self._player = None if wanted is None else counterfactual.make(wanted, context)
        self._policy = context.policy
        self._values = load_values(context.fitted) if context.fitted else None

    def assign(self, group: Group) -> list[np.ndarray]:
        """Credit of every turn, K float64 arrays [T_k].

        For later fits, it also fills in the turns' counterfactual targets and their embeddings,
        which are the policy's states before the turns.
        """
        rows = [self._from_fit(trajectory) for trajectory in group.trajectories]
        if self._player is None:
            return rows
        verdicts = self._player.verdicts(group)
        for trajectory, row in zip(group.trajectories, verdicts, strict=True):
            for turn, verdict in zip(trajectory.turns, row, strict=True):
                turn.target = None if np.isnan(verdict) else float(verdict)
        return [
            np.where(np.isnan(verdict), row, verdict)
            for verdict, row in zip(verdicts, rows, strict=True)
        ]

    def report(self) -> dict[str, float]:
        """Counts of alternatives, and of their new replies, replayed turns and tokens."""
        return {} if self._player is None else self._player.report()

    def _from_fit(self, trajectory: Trajectory) -> np.ndarray:
        if not trajectory.turns:
            return np.zeros(0)
        # The policy reads the trajectory on its own, so that the numbers depend on no batch. Rounds
        # store embeddings as float16. Rounding here gives stored rollouts the same credit.
        states = prompt_states(self._policy, [trajectory]).astype(np.float16)
        for turn, state in zip(trajectory.turns, states, strict=True):
            turn.embedding = state
        if self._values is None:
            return np.zeros(len(trajectory.turns))
        return trajectory.env_return - self._values(states)
