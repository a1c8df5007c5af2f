"""Stores measured true advantages and the methods' credit as arrays over all turns."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from hgrpo.evaluation.shared_rollouts import Computation, SharedRollouts
from hgrpo.evaluation.truth.resampling import resamples
from hgrpo.evaluation.truth.table import clear, sketches_of

INADMISSIBLE, NO_WORD, OTHER = "(not admissible)", "(no word)", "(other)"
# At most this many kinds of action are kept, the most common ones. Others are merged into `OTHER`.
KINDS = 12
_LETTERS = re.compile(r"[^\W\d_]+")
# Entries of the column `method` for the two kinds of truth, and of the column `beats_shuffled`.
SHUFFLED, TRUTH = "shuffled", "truth"
YES, NO = "yes", "no"
SHUFFLED_LABEL, TRUTH_LABEL = "Truth, shuffled", "Truth"


def action_kind(action: str, admissible: bool) -> str:
    """An action's first word: `go to desk 1` is `go`, and `click[red]` is `click`."""
    if not admissible:
        return INADMISSIBLE
    letters = _LETTERS.match(action.strip().lower())
    return letters.group() if letters else NO_WORD


def common_kinds(kinds: list[str]) -> np.ndarray:
    """Replace all but the `KINDS` most common kinds of action by `OTHER`; object array [N]."""
    ranked = sorted(Counter(kinds).items(), key=lambda item: (-item[1], item[0]))
    common = {kind for kind, _ in ranked[:KINDS]}
    return np.array([kind if kind in common else OTHER for kind in kinds], dtype=object)


@dataclass(frozen=True)
class MeasuredTruth:
    """True advantages A of N turns in G groups.

    Attributes:
        advantage, error, first, second: A, its standard error, and A from each half of the
            continuations, float64 [N].
        sketches: float64 [N, size], projections of the turns' gradients.
        owner: int [N], each turn's group, from 0 to G - 1.
        turn: int [N], index of each turn in its trajectory.
        kind: [N], kind of each action; see `action_kind`.
        lengths: int [trajectories], number of turns of each trajectory.
    """

    advantage: np.ndarray
    error: np.ndarray
    first: np.ndarray
    second: np.ndarray
    sketches: np.ndarray
    owner: np.ndarray
    turn: np.ndarray
    kind: np.ndarray
    lengths: np.ndarray

    @property
    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        return self.first, self.second

    @property
    def groups(self) -> int:
        return int(self.owner[-1]) + 1 if len(self.owner) else 0

    @cached_property
    def clear(self) -> np.ndarray:
        """Whether the sign of each turn's A is clear (`table.clear`), bool [N]."""
        return clear(self.advantage, self.error)

    @cached_property
    def weights(self) -> np.ndarray:
        """Multiplicities of the groups in each resample, float64 [R, G]."""
        return resamples(self.groups)

    @cached_property
    def within(self) -> "MeasuredTruth":
        """A copy in which A and its two estimates are centred within each trajectory."""
        names = ("advantage", "first", "second")
        return replace(self, **{name: self.centred(vars(self)[name]) for name in names})

    def centred(self, values: np.ndarray) -> np.ndarray:
        """Values [N] minus their means over each trajectory.

        If the values are equal up to rounding errors (of float32 or float64), the result is 0.
        """
        owner = np.repeat(np.arange(len(self.lengths)), self.lengths)
        means = np.bincount(owner, values) / np.bincount(owner)
        less = values - means[owner]
        return np.where(np.abs(less) > 1e-6 * np.abs(values).max(initial=0.0), less, 0.0)

    def of(self, known: np.ndarray) -> "MeasuredTruth":
        """Restrict to the groups whose turns are `known`, bool [N]."""
        if known.all():
            return self
        numbers = {
            name: vars(self)[name][known]
            for name in ("advantage", "error", "first", "second", "sketches", "turn", "kind")
        }
        starts = np.cumsum(self.lengths) - self.lengths
        _, owner = np.unique(self.owner[known], return_inverse=True)
        return MeasuredTruth(**numbers, owner=owner, lengths=self.lengths[known[starts]])


def measured_truth(table: pa.Table, actions: Sequence[tuple[str, bool]]) -> MeasuredTruth:
    """Convert a truth table to arrays.

    Args:
        actions: pairs (action, whether it was admissible) of the turns, in the order of the rows.
    """
    turn, step = table["turn"].to_numpy(), table["step"].to_numpy()
    return MeasuredTruth(
        advantage=table["advantage"].to_numpy(),
        error=table["advantage_se"].to_numpy(),
        first=table["advantage_first"].to_numpy(),
        second=table["advantage_second"].to_numpy(),
        sketches=sketches_of(table).astype(np.float64),
        owner=np.cumsum(np.diff(step, prepend=step[:1]) != 0),
        turn=turn,
        kind=common_kinds([action_kind(*action) for action in actions]),
        lengths=np.diff(np.flatnonzero(np.append(turn, 0) == 0)),
    )


@dataclass(frozen=True)
class Played:
    """Rollouts of one policy, with the credit of each method and (if measured) the truth."""

    plan: Sequence[Computation]
    rollouts: SharedRollouts
    truth: MeasuredTruth | None = None
