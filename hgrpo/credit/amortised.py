"""Amortised counterfactual credit, which uses a value function for turns without continuations.

Each round plays continuations only from randomly drawn turns. After the round, a linear value
function V is fitted to the mean returns of all continuations so far. Its input is the policy's
hidden state before a turn. The credit in the next round is

    credit_t = R - mean return of the continuations before turn t   if the turn was drawn,
    credit_t = R - V(state before turn t)                            otherwise.

V does not depend on the turn's action and was fitted on earlier rounds. If no turn is drawn, the
gradient is therefore unbiased even if V is inaccurate, and an accurate V reduces the variance. If
turns are drawn, the gradient has a small bias, because the probability of drawing a turn depends on
the length of the trajectory.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from hgrpo.atomic import write_json
from hgrpo.credit.base import Context, CreditAssigner, Group, Progress
from hgrpo.credit.counterfactual import CounterfactualCredit
from hgrpo.credit.counterfactual import Settings as CounterfactualSettings
from hgrpo.credit.prompt_states import prompt_states
from hgrpo.credit.settings import CreditSettings, StoredCredit
from hgrpo.errors import UserError
from hgrpo.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    from hgrpo.credit.replay import ReplayRow

WEIGHTS, CARD, LOG = "model.safetensors", "model.json", "train_log.json"
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, np.inf)


class Settings(CreditSettings):
    """Keys beside `kind: amortised`."""

    needs_policy = True
    fits = True
    demands = {"turn_norm": ("none", "its credit is an advantage already")}
    first_round_remark = (
        "No value function has been fitted in the first round, so only drawn turns have credit."
    )

    counterfactual: CounterfactualSettings | None = Field(
        CounterfactualSettings(share_of_groups=0.25),
        description="how to choose the turns from which continuations are played; null: no "
        "continuations are played, and no value function is fitted",
    )
    half_life: float | None = Field(
        2.0, gt=0, description="rounds after which a turn's weight is halved; null: no decay"
    )
    validation_share: float = Field(
        0.2, gt=0, lt=0.5, description="share of tasks held out to select the ridge penalty"
    )

    @property
    def plays(self) -> bool:  # type: ignore[override]
        return self.counterfactual is not None

    def on_stored_rollouts(self, fitted: bool) -> StoredCredit:
        """Use only the fitted value function, without new continuations."""
        settings = self.model_copy(update={"counterfactual": None})
        if not fitted:
            note = "the value function is not fitted yet, so every turn gets 0"
            return StoredCredit(settings, "", note, stand_in=True)
        note = "uses only the fitted value function; no new continuations are played"
        return StoredCredit(settings, "", note)


@dataclass(frozen=True)
class Values:
    """Linear value function V(x) = intercept + (x - mean) @ slope of states x of width D.

    Attributes:
        mean, slope: float64 [D].
    """

    intercept: float
    mean: np.ndarray
    slope: np.ndarray

    def __call__(self, states: np.ndarray) -> np.ndarray:
        return self.intercept + (np.asarray(states, dtype=np.float64) - self.mean) @ self.slope


def ridge(states: np.ndarray, values: np.ndarray, weights: np.ndarray, penalty: float) -> Values:
    """Fit V by minimising weighted mean squared error + penalty * |slope * standard deviation|^2.

    The slope is penalised as if the states were standardised, so the fit does not depend on their
    scale. With an infinite penalty, V is the weighted mean of the values.

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


def loss(fitted: Values, states: np.ndarray, values: np.ndarray, weights: np.ndarray) -> float:
    """Weighted mean squared error of the fit at states [N, D] with values [N] and weights [N]."""
    return float(np.average((fitted(states) - values) ** 2, weights=weights))


def save_values(fitted: Values, metrics: dict, folder: Path) -> None:
    """Write the value function, with a checksum, and a JSON file with the metrics."""
    from safetensors.numpy import save

    from hgrpo.base_model.safetensors_file import write_with_checksum

    arrays = {
        "intercept": np.array([fitted.intercept]),
        "mean": fitted.mean,
        "slope": fitted.slope,
    }
    write_with_checksum(save(arrays, metadata={"format": "np"}), folder / WEIGHTS)
    card = {"width": len(fitted.mean), "metrics": metrics}
    write_json(folder / CARD, card)


def load_values(folder: Path) -> Values:
    """Load the value function written by `save_values`.

    Raises:
        UserError: the file is missing or damaged.
    """
    # Imported here because safetensors is not required to read a study.
    from safetensors.numpy import load_file

    from hgrpo.base_model.safetensors_file import check_checksum

    path = folder / WEIGHTS
    if not path.is_file():
        raise UserError(f"{path}: file not found; expected a fitted value function in {folder}")
    check_checksum(path)
    arrays = load_file(path)
    return Values(float(arrays["intercept"][0]), arrays["mean"], arrays["slope"])


class AmortisedCredit(CreditAssigner):
    """Assigns the credit R - V, where V is the value before the turn.

    For a drawn turn, V is the mean return of the turn's continuations. For any other turn, V comes
    from the value function fitted after the previous round; before the first fit, the credit is 0.
    """

    def __init__(self, settings: Settings, context: Context):
        super().__init__(settings, context)
        play = settings.counterfactual
        self._player = None if play is None else CounterfactualCredit(play, context)
        self._values = load_values(context.fitted) if context.fitted else None

    def assign(self, group: Group) -> list[np.ndarray]:
        """Return the credit of every turn, K float64 arrays [T_k].

        For later fits, each turn's `target` and `embedding` are set. The embedding is the policy's
        hidden state before the turn.
        """
        rows = [self._from_fit(trajectory) for trajectory in group.trajectories]
        if self._player is None:
            return rows
        return [
            np.where(np.isnan(verdict), row, verdict)
            for verdict, row in zip(self._player.teach(group), rows, strict=True)
        ]

    def report(self) -> dict[str, float]:
        """Return counts of continuations, and of their replies, replayed turns and tokens."""
        return {} if self._player is None else self._player.report()

    def _from_fit(self, trajectory: Trajectory) -> np.ndarray:
        if not trajectory.turns:
            return np.zeros(0)
        # Process each trajectory alone, so that its result does not depend on other trajectories.
        # Round the states to float16, the dtype of stored embeddings, so that rollouts read from a
        # file get the same credit as during training.
        states = prompt_states(self.context.policy, [trajectory]).astype(np.float16)
        for turn, state in zip(trajectory.turns, states, strict=True):
            turn.embedding = state
        if self._values is None:
            return np.zeros(len(trajectory.turns))
        return trajectory.env_return - self._values(states)


make = AmortisedCredit


def fit(
    settings: Settings,
    rounds: Sequence[Path],
    previous: Path | None,
    seed: int,
    round: int,
    out: Path,
    show: Progress,
) -> str:
    """Fit V on the rounds so far; see `hgrpo.credit.kinds` for the arguments.

    If no continuations have been played yet, V is the mean return.

    Raises:
        UserError: a round cannot be used.
    """
    # Imported here because pyarrow is not required to read a study.
    from hgrpo.credit.replay import read_replay

    began = time.perf_counter()
    rows = read_replay(rounds)
    drawn = [row for row in rows if row.targets is not None]
    if drawn:
        values, log = _fitted(settings, drawn, seed, round, show)
    else:
        zeros = np.zeros(rows[0].embeddings.shape[1])
        values, log = Values(float(np.mean([row.env_return for row in rows])), zeros, zeros), []
    n_values = sum(int((~np.isnan(row.targets)).sum()) for row in drawn)
    metrics = {"n_values": n_values, "rounds": sorted({row.round for row in rows})}
    if log:
        metrics["best"] = min(log, key=lambda row: row["validation_loss"])
    save_values(values, metrics, out)
    record = {"rows": log, "elapsed_s": time.perf_counter() - began}
    write_json(out / LOG, record)
    if not log:
        return "amortised: no continuations have been played yet, so V is the mean return"
    return (
        f"amortised: fitted to {n_values} values, validation loss "
        f"{log[-1]['validation_loss']:.4f} (constant V) -> "
        f"{metrics['best']['validation_loss']:.4f} (fitted V)"
    )


def _fitted(
    settings: Settings, rows: Sequence["ReplayRow"], seed: int, round: int, show: Progress
) -> tuple[Values, list[dict]]:
    from hgrpo.credit.replay import split

    advance = show(len(PENALTIES), "penalty")
    training, held_out = split(rows, settings.validation_share, seed)
    validation = held_out or training  # a single task is used for both
    fitting, checking = (points(part, round, settings.half_life) for part in (training, validation))
    log = []
    for index, penalty in enumerate(PENALTIES):
        error = loss(ridge(*fitting, penalty), *checking)
        advance(f"validation={error:.4f}")
        # JSON has no infinity, so an infinite penalty is stored as null.
        finite = penalty if np.isfinite(penalty) else None
        log.append({"epoch": index, "penalty": finite, "validation_loss": error})
    best = PENALTIES[int(np.argmin([row["validation_loss"] for row in log]))]
    return ridge(*points(rows, round, settings.half_life), best), log


def points(
    rows: Sequence["ReplayRow"], newest: int, half_life: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return states [N, D], values [N] and weights [N] of the turns with continuations.

    A turn's value is the mean return of its continuations, which is the trajectory's return minus
    the turn's `target`. A turn's weight is 1 in round `newest`, and is halved for every `half_life`
    rounds that the turn is older.
    """
    states, values, weights = [], [], []
    for row in rows:
        drawn = ~np.isnan(row.targets)
        states.append(row.embeddings[drawn].astype(np.float64))
        values.append(row.env_return - row.targets[drawn])
        age = 0.0 if half_life is None else (newest - row.round) / half_life
        weights.append(np.full(int(drawn.sum()), 2.0**-age))
    return np.concatenate(states), np.concatenate(values), np.concatenate(weights)
