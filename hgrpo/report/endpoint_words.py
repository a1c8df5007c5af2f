"""Text for a study's endpoint and measures in sentences, column titles and figures."""

from dataclasses import dataclass

import pandas as pd

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.endpoint import AREA, LAST_ROUND
from hgrpo.evaluation.settings import Budget, Score
from hgrpo.report.arms import Arms


@dataclass(frozen=True)
class Measure:
    """A quantity plotted in learning curves, with its columns in `Comparison.rounds`."""

    column: str
    lower: str
    upper: str
    name: str
    unit: str

    @property
    def columns(self) -> tuple[str, str, str]:
        """Columns of the quantity and of its interval's lower and upper ends."""
        return self.column, self.lower, self.upper


# A score is 100 times a return, as in papers on shopping agents.
SUCCESS = Measure("success", "lower", "upper", "success", " %")
SCORE = Measure("mean_return", "return_lower", "return_upper", "score", "")
MEASURES: dict[Score, Measure] = {"success": SUCCESS, "return": SCORE}


def endpoint_phrase(comparison: Comparison) -> str:
    """Name of the declared endpoint in a sentence, e.g. `mean success over rounds 1 to 5`."""
    settings = comparison.protocol.settings
    measure, last = MEASURES[settings.score].name, max(comparison.last_round.values())
    if settings.endpoint == AREA:
        return f"mean {measure} over {f'rounds 1 to {last}' if last > 1 else 'the only round'}"
    if settings.endpoint == LAST_ROUND:
        return f"{measure} after the last round"
    return f"{measure} at a budget of {settings.endpoint.budget:,} trajectories played"


def over_budget(comparison: Comparison, play: pd.DataFrame, arms: Arms) -> str:
    """A sentence on the arms whose first round exceeds the declared budget; "" if there are none.

    `play` is from `logs.play_by_round`.
    """
    endpoint = comparison.protocol.settings.endpoint
    if not isinstance(endpoint, Budget):
        return ""
    first = play[(play["round"] == 1) & play["method"].isin(arms.trained)]
    over = (first["trajectories"] > endpoint.budget).groupby(first["method"]).agg(["sum", "size"])
    named = [
        f"{arms.label(name)} ({over.loc[name, 'sum']} of {over.loc[name, 'size']} runs)"
        for name in arms.trained
        if name in over.index and over.loc[name, "sum"]
    ]
    if not named:
        return ""
    return (
        f"The first round exceeds {endpoint.budget:,} trajectories for {', '.join(named)}: these "
        "runs are scored by their initial policy."
    )


def endpoint_title(name: str, score: Score) -> str:
    """Column title: `area`, `last round, score` or `7,680 trajectories`.

    `name` is from `hgrpo.evaluation.endpoint.endpoint_name`.
    """
    kind, _, number = name.partition("_")
    title = f"{int(number):,} trajectories" if kind == "budget" else name.replace("_", " ")
    return title if score == "success" else f"{title}, {MEASURES[score].name}"


def threshold_text(value: float, score: Score) -> str:
    """A threshold without rounding: `45 %`, `45.5 %`, or a score without a unit."""
    return f"{100 * value:g}" + ("\u00a0%" if score == "success" else "")


def amount(value: float, score: Score) -> str:
    """Format a success rate in per cent, or a return times 100 without a unit; NaN as a dash."""
    if pd.isna(value):
        return "\u2013"
    return f"{100 * value:.1f}" + ("\u00a0%" if score == "success" else "")


def untrained_level(comparison: Comparison, arms: Arms, column: str = "success") -> float | None:
    """Mean of `column` on the test panel for the SFT arm at its best temperature.

    None if this arm was not run.
    """
    rows = comparison.methods
    rows = rows[
        (rows["method"] == arms.untrained) & (rows["temperature"] == comparison.best_temperature)
    ]
    return rows[column].iloc[0] if len(rows) else None
