"""TurnRD: a learnt decomposition of the return over the turns, fitted between rounds."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.credit import counterfactual
from hgrpo.credit.base import Context, Progress
from hgrpo.credit.turnrd.settings import Settings

if TYPE_CHECKING:
    from hgrpo.credit.turnrd.assigner import TurnRDCredit

__all__ = ["Settings", "fit", "make"]


def make(settings: Settings, context: Context) -> "TurnRDCredit":
    """The assigner; torch is imported here, because reading a study does not need it."""
    from hgrpo.credit.turnrd.assigner import TurnRDCredit

    wanted = settings.counterfactual
    targets = None if wanted is None else counterfactual.make(wanted, context)
    return TurnRDCredit(settings, context, targets)


def fit(
    settings: Settings,
    rounds: Sequence[Path],
    previous: Path | None,
    seed: int,
    round: int,
    out: Path,
    show: Progress,
) -> str:
    """Fit the model on the rounds so far; see `after_round.fit_after_round`."""
    from hgrpo.credit.turnrd.after_round import fit_after_round

    return fit_after_round(settings, rounds, previous, seed, round, out, show)
