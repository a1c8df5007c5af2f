"""Estimate the power of a planned study, from the runs of a finished study or of tuning runs.

For each arm, the script prints the share of simulated studies in which the arm is found better or
worse than flat GRPO. The analysis is that of the report (`hgrpo.evaluation.run_spread`, with Holm's
correction over all arms). The scores of an arm's runs are drawn from a normal distribution with the
mean and standard deviation of the given runs. Flat GRPO and its A/A twin have the same
distribution, and their runs are pooled.

Examples:
  python benchmarks/study_power.py docs/tables/first_look/seeds.csv --seeds 5 6 7
  python benchmarks/study_power.py docs/tables/first_look/tuning.csv.gz --rate 2e-3 --add 0.1
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special
from verdicts import ALPHA, holm

from hgrpo.evaluation.run_spread import run_spread

REFERENCE, TWIN, UNTRAINED = "flatGRPO", "flatGRPO_AA", "SFTOnly"
GAMES, OF_A_GAME = 500, 0.04  # variance of the difference in one game, as in first_look


def read_runs(path: Path, rate: float | None) -> pd.Series:
    """Score of each run, by arm: the endpoint or, for a tuning run, the mean over its rounds."""
    table = pd.read_csv(path).query("method != @UNTRAINED")
    if "endpoint" in table:
        return table.set_index("method")["endpoint"]
    table = table[(table["round"] > 0) & (table["training.lr"] == rate)]
    # The name of a tuned arm is its method and a number, such as Exact20.
    arms = table["method"].str.extract(r"([A-Za-z_]+?)\d+$")[0]
    return table.groupby([arms.rename("method"), "seed"])["success"].mean().droplevel("seed")


def power(runs: pd.Series, seeds: int, add: list[float], repeats: int = 10_000) -> pd.DataFrame:
    """Mean difference and power of each arm, from `repeats` simulated studies.

    The columns `better` and `worse` are shares of simulated studies.

    Args:
        runs: score of each run, by arm.
        add: one number per additional arm, the difference between its mean and the reference's.
            The runs of an additional arm have the standard deviation of the reference.
    """
    runs = runs.rename({TWIN: REFERENCE})
    moments = runs.groupby(level=0).agg(["mean", "std"])
    base = moments.loc[REFERENCE]
    arms = [name for name in moments.index if name != REFERENCE]
    means = np.array([base["mean"], *moments.loc[arms, "mean"], *(base["mean"] + np.array(add))])
    spread = np.array([base["std"], *moments.loc[arms, "std"], *([base["std"]] * len(add))])
    rng = np.random.default_rng(51)
    drawn = means[:, None] + spread[:, None] * rng.standard_normal((repeats, len(means), seeds))
    twin = base["mean"] + base["std"] * rng.standard_normal((repeats, seeds))
    estimated = run_spread(drawn, twin)
    variance, freedom = estimated.from_both(np.arange(1, len(means)), 0)
    of_twin, its_freedom = estimated.of_twin(0)
    reference, other = drawn[:, 0].mean(axis=1), twin.mean(axis=1)
    differences = np.column_stack(
        [drawn[:, 1:].mean(axis=2) - ((reference + other) / 2)[:, None], other - reference]
    )
    variance = np.column_stack([variance, of_twin]) + OF_A_GAME / GAMES
    freedom = np.column_stack([freedom, its_freedom])
    p_values = 2 * special.stdtr(freedom, -np.abs(differences) / np.sqrt(variance))
    called = holm(p_values) < ALPHA
    names = [*arms, *(f"an arm at {100 * each:+g}" for each in add), TWIN]
    return pd.DataFrame(
        {
            "points": 100 * differences.mean(axis=0),
            "better": (called & (differences > 0)).mean(axis=0),
            "worse": (called & (differences < 0)).mean(axis=0),
        },
        index=pd.Index(names, name="arm"),
    )


def main() -> None:
    """Print the power for each number of seeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, help="seeds.csv or tuning.csv.gz of docs/tables")
    parser.add_argument("--rate", type=float, help="learning rate of the tuning runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[5, 6, 8, 10])
    parser.add_argument(
        "--add",
        type=float,
        nargs="*",
        default=[],
        help="add simulated arms with these differences from the reference",
    )
    args = parser.parse_args()
    runs = read_runs(args.runs, args.rate)
    for seeds in args.seeds:
        print(f"{seeds} seeds\n{power(runs, seeds, args.add).round(3).to_string()}")


if __name__ == "__main__":
    main()
