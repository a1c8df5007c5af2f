"""What curves of learning show, success or score, and the supervised policy's level of it."""

from dataclasses import dataclass

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.settings import Score
from hgrpo.report.arms import Arms


@dataclass(frozen=True)
class Measure:
    """A quantity that a learning curve shows, with its columns in `Comparison.rounds`."""

    column: str
    lower: str
    upper: str
    name: str
    unit: str

    @property
    def columns(self) -> tuple[str, str, str]:
        """The columns of the quantity and of the ends of its interval."""
        return self.column, self.lower, self.upper


SUCCESS = Measure("success", "lower", "upper", "success", " %")
SCORE = Measure("mean_return", "return_lower", "return_upper", "score", "")
MEASURES: dict[Score, Measure] = {"success": SUCCESS, "return": SCORE}


def untrained_level(comparison: Comparison, arms: Arms, column: str = "success") -> float | None:
    """SFT policy's test success (or `column`) at its best temperature; None without an SFT arm."""
    rows = comparison.methods
    rows = rows[
        (rows["method"] == arms.untrained) & (rows["temperature"] == comparison.best_temperature)
    ]
    return rows[column].iloc[0] if len(rows) else None
