"""Test whether agreement with ground-truth credit predicts how fast a method learns.

Each arm is one point of the plot. The x-axis shows the arm's agreement with the true advantages on
rollouts of the SFT policy (truth.csv). The y-axis shows the arm's endpoint on test tasks, averaged
over seeds (seeds.csv). The statistic is Spearman's rank correlation over arms, with a BCa bootstrap
interval over arms. The interval's coverage for 24 independent arms is 95 % (400 repeats,
correlations 0 and 0.6). Related arms are not independent, so the interval is somewhat too narrow.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy.stats import bootstrap, rankdata

from hgrpo.evaluation.truth.measured import SHUFFLED, TRUTH
from hgrpo.report.csv_file import write_csv
from hgrpo.report.style import GRID, INK, Drawing, canvas, percent_axis, save
from hgrpo.report.words import MINUS

NAME = "agreement_speed"
# Maps columns of truth.csv to their labels. The first column is the primary measure.
MEASURES = {
    "advantage_pearson": "correlation with the true advantages",
    "within_pearson": "correlation within trajectories",
    "cosine": "cosine of the update with the true update",
}
_TWIN = "_AA"
_SFT_POLICY = 0


def points(folder: Path) -> pd.DataFrame:
    """One row per arm: its agreement with ground truth on SFT rollouts, and its mean endpoint.

    `within_pearson` is 0 for an arm whose advantages are constant within trajectories. A/A twins
    are excluded. `folder` contains the published tables of a study.
    """
    truth = pd.read_csv(folder / "truth.csv").query("round == @_SFT_POLICY")
    runs = pd.read_csv(folder / "seeds.csv").query("temperature == 0")
    speed = runs.groupby("method")["endpoint"].agg(["mean", "sem"])
    arms = truth[~truth["method"].isin([TRUTH, SHUFFLED])]
    arms = arms[~arms["method"].str.endswith(_TWIN)]
    ends = [f"advantage_pearson{end}" for end in ("_lower", "_upper")]
    table = arms[["method", "label", *MEASURES, *ends]].merge(
        speed, left_on="method", right_index=True
    )
    return table.fillna({"within_pearson": 0.0}).reset_index(drop=True)


def correlations(arms: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation of each measure with the endpoint, with a 95 % interval."""
    rows = []
    for measure in MEASURES:
        both = arms[[measure, "mean"]].dropna().to_numpy().T
        interval = bootstrap(
            both, _rank_correlation, paired=True, vectorized=True, n_resamples=9999, rng=0
        ).confidence_interval
        rows.append([measure, both.shape[1], float(_rank_correlation(*both)), *interval])
    return pd.DataFrame(rows, columns=["measure", "arms", "spearman", "lower", "upper"])


def drawing(arms: pd.DataFrame, ranks: pd.DataFrame) -> Drawing:
    """Draw the arms as numbered points, with a list of their names."""
    arms = arms.sort_values("mean", ascending=False)
    main = ranks.iloc[0]
    figure, axes = canvas(1, 2, height=4.6, width_ratios=[1.5, 1])
    ax, names = axes[0]
    x = arms[main["measure"]]
    across = [x - arms[f"{main['measure']}_lower"], arms[f"{main['measure']}_upper"] - x]
    ax.errorbar(x, arms["mean"], arms["sem"], across, fmt="none", ecolor=GRID, zorder=1)
    for number, (place, height) in enumerate(zip(x, arms["mean"], strict=True), start=1):
        ax.text(place, height, str(number), ha="center", va="center", fontsize=8, color=INK)
    ax.set_xlabel(f"{MEASURES[main['measure']]}, SFT policy")
    ax.set_title("Endpoint on test tasks", fontsize=9)
    percent_axis(ax.yaxis)
    ranked = [f"{number:>2}  {label}" for number, label in enumerate(arms["label"], start=1)]
    names.text(0, 1, "\n".join(ranked), va="top", fontsize=8, transform=names.transAxes)
    names.set_axis_off()
    rank = with_interval(main)
    return Drawing(
        NAME,
        "truth",
        "Does agreement with the truth predict how fast a method learns?",
        f"Spearman's rank correlation over {main['arms']} arms: {rank}. Bars: 95 % intervals of "
        "the agreement, standard errors of the endpoint over seeds.",
        f"{main['arms']} arms by their agreement with the truth and by their endpoint: {rank}.",
        figure,
        arms,
    )


def with_interval(row: pd.Series) -> str:
    """A correlation and its interval as text."""
    text = f"{row['spearman']:.2f} ({row['lower']:.2f} to {row['upper']:.2f})"
    return text.replace("-", MINUS)


def write(tables: Path, figures: Path) -> None:
    """Write agreement_speed.csv and agreement_speed.svg beside a study's published files."""
    arms = points(tables)
    ranks = correlations(arms)
    with TemporaryDirectory() as folder:
        save(drawing(arms, ranks), Path(folder))
        shutil.copy(Path(folder) / f"{NAME}.svg", figures)
    write_csv(ranks, tables / f"{NAME}.csv")


def _rank_correlation(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    ranks = (rankdata(each, axis=axis) for each in (x, y))
    first, second = (each - each.mean(axis=axis, keepdims=True) for each in ranks)
    both = (first * second).sum(axis=axis)
    return both / np.sqrt((first**2).sum(axis=axis) * (second**2).sum(axis=axis))
