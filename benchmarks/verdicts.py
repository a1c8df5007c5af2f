"""Measure the error rate and the power of each statistical analysis in simulated studies.

A cell of the grid combines a study design (seeds, comparisons, endpoint, A/A twin) with a data
model: normal or Bernoulli scores of games, standard deviations of the arms, collapsed runs, and
variance shared by all arms of a seed. For each cell, the script simulates studies whose arms are
equal, and half as many studies in which one arm is better. The project uses the analysis `taken`.
The other analyses are alternatives that the project does not use.

Cells that differ only in endpoint, score distribution and shared variance form one row of the
table. The row contains the highest probability of a false verdict (at least one arm found better or
worse although all are equal) with its 95 % Wilson interval, and the shares of false verdicts in
each direction. It also contains the lowest coverage of the 95 % interval of a difference, and the
mean power for the better arm.

Examples:
  nice python benchmarks/verdicts.py                      # the whole grid, about half an hour
  python benchmarks/verdicts.py --seeds 5 --comparisons 7   # a slice; other rows are kept
  python benchmarks/verdicts.py --small --out /tmp/small.csv   # a minute, for a quick look
"""

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
from scipy import special
from tqdm import tqdm

from hgrpo.evaluation.run_spread import run_spread
from hgrpo.evaluation.statistics import ALPHA, LEVEL, wilson_interval

ROOT = Path(__file__).resolve().parent.parent
GAMES, ROUNDS = 500, 5
# Success rate of an arm, and standard deviation of the endpoint over the runs of one arm. Both are
# taken from the study `bakeoff`.
SUCCESS, DEVIATION = 0.45, {"area": 0.04, "last_round": 0.06}
# True difference between arms for the power calculation, in standard deviations over runs.
AHEAD = 2.5
COLLAPSED, FAILED = 0.2, 0.01
WIDE = 3.0
SPREADS = ("equal", "ramp", "one_wide", "few_wide", "wide_reference")
_NEVER = 1.95
CELL = ("seeds", "comparisons", "baseline", "twin", "spreads", "collapse")


@dataclass(frozen=True)
class Cell:
    """A study design and a data model.

    Attributes:
        baseline: `reference` (the arms are compared with another trained arm) or `fixed` (with the
            SFT policy).
        twin: whether the reference has an A/A twin. The runs of the twin are pooled with those of
            the reference.
        spreads: relative standard deviations of the arms' runs. `equal`: the same for all arms.
            `ramp`: increasing from 1 to 3. `one_wide`: 3 for one arm, and 1 for all other arms.
            `few_wide`: 3 for about a sixth of the arms, and 1 for all other arms.
            `wide_reference`: 3 for the reference, and 1 for all other arms.
        collapse: whether each run collapses at a random round with probability 0.2.
        common: share of the variance of runs that is common to all arms with the same seed.
        games: distribution of the scores of single games, `normal` or `bernoulli`.
    """

    seeds: int
    comparisons: int
    baseline: str = "reference"
    twin: bool = False
    spreads: str = "equal"
    collapse: bool = False
    common: float = 0.0
    endpoint: str = "area"
    games: str = "normal"

    def deviations(self) -> np.ndarray:
        """Relative standard deviation of the runs of each arm [arms], with mean square 1."""
        arms = self.comparisons + (self.baseline == "reference")
        deviations = np.ones(arms)
        if self.spreads == "ramp":
            deviations = np.roll(np.geomspace(1, WIDE, arms), arms // 2)
        elif self.spreads == "wide_reference":
            deviations[0] = WIDE
        elif self.spreads != "equal":
            deviations[1 : 2 if self.spreads == "one_wide" else 2 + arms // 6] = WIDE
        return deviations / np.sqrt((deviations**2).mean())


@dataclass(frozen=True)
class Studies:
    """Simulated repeats of a study.

    Attributes:
        runs: mean score of each run [repeats, arms, seeds]. Unless the baseline is fixed, arm 0 is
            the reference.
        twin: mean scores of the runs of the reference's twin [repeats, seeds], or None.
        games: variance that the choice of games adds to the mean difference [repeats,
            comparisons].
        fixed: mean score of the fixed baseline [repeats], or None.
    """

    runs: np.ndarray
    twin: np.ndarray | None
    games: np.ndarray
    fixed: np.ndarray | None

    @property
    def differences(self) -> np.ndarray:
        """Difference of each comparison and seed [repeats, comparisons, seeds]."""
        if self.fixed is not None:
            return self.runs - self.fixed[:, None, None]
        reference = self.runs[:, 0]
        if self.twin is not None:
            reference = (reference + self.twin) / 2
        return self.runs[:, 1:] - reference[:, None]


def draw(cell: Cell, rng: np.random.Generator, repeats: int, ahead: float = 0.0) -> Studies:
    """Simulate studies whose arms are equal, except for the arm of the first comparison.

    The success rate of this arm is higher by `ahead` standard deviations of a run.
    """
    relative = cell.deviations()
    deviation = DEVIATION[cell.endpoint]
    if cell.twin:
        relative = np.append(relative, relative[0])
    shape = (repeats, len(relative), cell.seeds)
    shift = rng.standard_normal((repeats, 1, cell.seeds)).repeat(len(relative), 1)
    if cell.twin:  # drawn with separate random numbers
        shift[:, -1] = rng.standard_normal((repeats, cell.seeds))
    noise = relative[:, None] * rng.standard_normal(shape)
    spread = np.sqrt(cell.common) * shift + np.sqrt(1 - cell.common) * noise
    level = SUCCESS + deviation * spread
    fixed = SUCCESS if cell.baseline == "fixed" else None
    level[:, 0 if fixed else 1] += ahead * deviation
    rounds = ROUNDS if cell.endpoint == "area" else 1
    learning = np.full(shape, rounds)
    if cell.collapse:
        learning = np.where(rng.random(shape) < COLLAPSED, rng.integers(0, rounds, shape), rounds)
        if fixed:  # the mean of the arms if training had no effect
            fixed *= 1 - COLLAPSED * (rounds + 1) / (2 * rounds)
            fixed += FAILED * COLLAPSED * (rounds + 1) / (2 * rounds)
    success = np.clip(level, FAILED, 1 - FAILED)
    of_games = learning * success * (1 - success) + (rounds - learning) * FAILED * (1 - FAILED)
    of_games = of_games / rounds**2
    if cell.games == "bernoulli":
        won = sum(
            rng.binomial(GAMES, np.where(number < learning, success, FAILED))
            for number in range(rounds)
        )
        runs = won / (GAMES * rounds)
    else:
        runs = (learning * level + (rounds - learning) * FAILED) / rounds
        runs += np.sqrt(of_games / GAMES) * rng.standard_normal(shape)
    return _studies(cell, rng, runs, of_games.mean(axis=2) / cell.seeds, fixed)


def _studies(
    cell: Cell, rng: np.random.Generator, runs: np.ndarray, games: np.ndarray, fixed: float | None
) -> Studies:
    """Add the variance between games, which is estimated with two pseudo-games.

    All games are equally hard, so games are independent given the scores of the runs.
    """
    arms = cell.comparisons + (fixed is None)
    if fixed is None:
        theirs = games[:, :1] if not cell.twin else (games[:, :1] + games[:, -1:]) / 4
        mine = games[:, 1:arms] + theirs
    else:
        of_games = fixed * (1 - fixed)
        mine = games[:, :arms] + of_games
        fixed = fixed + np.sqrt(of_games / GAMES) * rng.standard_normal(len(runs))
    sampled = rng.chisquare(GAMES - 1, mine.shape) / (GAMES - 1)
    added = mine * sampled / GAMES + 2 / (GAMES + 1) / (GAMES + 2)
    return Studies(runs[:, :arms], runs[:, -1] if cell.twin else None, added, fixed)


# An analysis returns two arrays of shape [repeats, comparisons]: variances and degrees of freedom.
# Each variance is that of the mean difference of one comparison.
Found = tuple[np.ndarray, np.ndarray]


def taken(studies: Studies) -> Found:
    """The analysis that the project uses."""
    spread = run_spread(studies.runs, studies.twin)
    arms = np.arange(studies.runs.shape[1])
    if studies.fixed is not None:
        variance, freedom = spread.level(arms)
    elif studies.twin is None:
        variance, freedom = spread.difference(arms[1:], 0)
    else:
        variance, freedom = spread.from_both(arms[1:], 0)
    return variance + studies.games, freedom


def today(studies: Studies) -> Found:
    """The analysis that the project used until November 2026.

    The variance of each difference is estimated separately, and its degrees of freedom come from
    Satterthwaite's approximation with the variances between runs and between games.
    """
    alone, seeds = _own(studies)
    return _with_games(alone, seeds - 1, studies)


def one_less_than_seeds(studies: Studies) -> Found:
    """Variance of each difference, always with (number of seeds - 1) degrees of freedom."""
    alone, seeds = _own(studies)
    return alone + studies.games, np.full(alone.shape, seeds - 1.0)


def welch(studies: Studies) -> Found:
    """Welch's test, which does not pair the runs of two arms by seed."""
    alone = studies.runs.var(axis=2, ddof=1) / studies.runs.shape[2]
    seeds = studies.runs.shape[2]
    if studies.fixed is not None:
        return _with_games(alone, seeds - 1, studies)
    runs = studies.runs[:, 0]
    if studies.twin is not None:
        runs = np.concatenate([runs, studies.twin], axis=1)
    mine, theirs = alone[:, 1:], runs.var(axis=1, ddof=1)[:, None] / runs.shape[1]
    total = mine + theirs
    freedom = total**2 / (mine**2 / (seeds - 1) + theirs**2 / (runs.shape[1] - 1))
    return _with_games(total, freedom, studies)


def pooled(studies: Studies) -> Found:
    """Residual variance of the two-way layout of arms and seeds, pooled over all arms."""
    spread = run_spread(studies.runs, studies.twin)
    equal = replace(
        spread,
        arms=np.broadcast_to(spread.pooled[:, None], spread.arms.shape),
        noisier=np.zeros(spread.noisier.shape, bool),
        wide=np.zeros(spread.noisier.shape, bool),
        twin=None if spread.twin is None else spread.pooled,
    )
    arms = np.arange(studies.runs.shape[1])
    if studies.fixed is not None:
        variance, freedom = equal.level(arms)
    else:
        both = equal.difference if studies.twin is None else equal.from_both
        variance, freedom = both(arms[1:], 0)
    return variance + studies.games, freedom


def moderated(studies: Studies) -> Found:
    """Variances of the differences, shrunk towards a prior that is fitted to all variances.

    Source: Smyth 2004, "Linear Models and Empirical Bayes Methods for Assessing Differential
    Expression in Microarray Experiments" (https://doi.org/10.2202/1544-6115.1027), section 6.2.
    """
    alone, seeds = _own(studies)
    freedom = seeds - 1.0
    # If all runs are equal, the variance is 0 and has no logarithm. Variances are therefore raised
    # to a minimum, as in limma, the R package by the authors of this method.
    alone = np.maximum(alone, 1e-5 * np.median(alone, axis=1, keepdims=True))
    logs = np.log(alone) - special.digamma(freedom / 2) + np.log(freedom / 2)
    more = logs.var(axis=1, ddof=1, keepdims=True) - special.polygamma(1, freedom / 2)
    prior = np.where(more > 0, 2 * _trigamma_inverse(np.maximum(more, 1e-9)), np.inf)
    known = np.minimum(prior, 1e9)
    centre = np.exp(
        logs.mean(axis=1, keepdims=True) + special.digamma(known / 2) - np.log(known / 2)
    )
    variance = (known * centre + freedom * alone) / (known + freedom)
    freedom = np.minimum(known + freedom, freedom * alone.shape[1])
    return _with_games(variance, freedom, studies)


def _trigamma_inverse(values: np.ndarray) -> np.ndarray:
    """Newton's method of Smyth 2004, appendix."""
    root = 0.5 + 1 / values
    for _ in range(30):
        trigamma = special.polygamma(1, root)
        root = root + trigamma * (1 - trigamma / values) / special.polygamma(2, root)
    return root


def _own(studies: Studies) -> tuple[np.ndarray, int]:
    differences = studies.differences
    seeds = differences.shape[2]
    return differences.var(axis=2, ddof=1) / seeds, seeds


def _with_games(variance: np.ndarray, freedom: np.ndarray | float, studies: Studies) -> Found:
    games = studies.games
    total = variance + games
    return total, total**2 / (variance**2 / freedom + games**2 / (GAMES - 1))


ANALYSES = {
    "taken": taken,
    "today": today,
    "seeds - 1": one_less_than_seeds,
    "Welch": welch,
    "pooled": pooled,
    "moderated": moderated,
}


def holm(p_values: np.ndarray) -> np.ndarray:
    """Adjust p-values [repeats, comparisons] with Holm's method, separately for each repeat."""
    order = p_values.argsort(axis=1)
    steps = np.arange(p_values.shape[1], 0, -1)
    ordered = np.maximum.accumulate(np.take_along_axis(p_values, order, 1) * steps, axis=1)
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, ordered, 1)
    return adjusted


def measure(cell: Cell, repeats: int, seed: int) -> Iterator[dict]:
    """Yield a row for each analysis: counts of studies with false verdicts, coverage, and power.

    The random numbers of a cell depend only on the seed and the cell. A part of the grid therefore
    gives the same rows as the whole grid.
    """
    rng = np.random.default_rng([seed, crc32(repr(cell).encode())])
    equal, ahead = draw(cell, rng, repeats), draw(cell, rng, repeats // 2, AHEAD)
    for name, analysis in ANALYSES.items():
        variance, freedom = analysis(equal)
        means = equal.differences.mean(axis=2)
        p_values = _p_values(means, variance, freedom)
        called = holm(p_values) < ALPHA
        decided = holm(_p_values(ahead.differences.mean(axis=2), *analysis(ahead)))[:, 0] < ALPHA
        yield asdict(cell) | {
            "analysis": name,
            "repeats": repeats,
            "either": int(called.any(axis=1).sum()),
            "better": int((called & (means > 0)).any(axis=1).sum()),
            "worse": int((called & (means < 0)).any(axis=1).sum()),
            "coverage": float((p_values >= 1 - LEVEL).mean()),
            "power": float((decided & (ahead.differences.mean(axis=2)[:, 0] > 0)).mean()),
        }


def _p_values(means: np.ndarray, variance: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """Two-sided p-values.

    To save time, p is set to 1 if |t| is at most 1.95, because p is then always above 5 %.
    """
    values = np.abs(means) / np.sqrt(variance)
    known = values > _NEVER
    freedom = np.broadcast_to(freedom, values.shape)
    p_values = np.ones(values.shape)
    p_values[known] = 2 * special.stdtr(freedom[known], -values[known])
    return p_values


def grid(seeds: list[int], comparisons: list[int]) -> list[Cell]:
    """All cells. A fixed baseline is combined only with normal scores and the endpoint `area`."""
    worlds = list(product(SPREADS, (False, True), (0.0, 0.5)))
    designs = list(product(seeds, comparisons))
    cells = [
        Cell(*design, "reference", twin, *world, endpoint, games)
        for design in designs
        for twin, world in product((False, True), worlds)
        for endpoint, games in product(DEVIATION, ("normal", "bernoulli"))
    ]
    return cells + [
        Cell(*design, "fixed", False, *world)
        for design, world in product(designs, worlds)
        if world[0] != "wide_reference"
    ]


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Merge the rows of cells that differ only in endpoint, scores of games or shared variance."""
    groups = rows.groupby(["analysis", *CELL], sort=False)
    table = rows.loc[groups["either"].idxmax()].set_index(["analysis", *CELL])
    ends = [wilson_interval(row.either, row.repeats) for row in table.itertuples()]
    shares = table[["either", "better", "worse"]].div(table["repeats"], axis=0)
    shares = shares.assign(lower=[end[0] for end in ends], upper=[end[1] for end in ends])
    shares["coverage"], shares["power"] = groups["coverage"].min(), groups["power"].mean()
    return shares.assign(repeats=table["repeats"], cells=groups.size()).reset_index().round(4)


def main() -> None:
    """Simulate the grid and write its table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 4, 5, 10])
    parser.add_argument("--comparisons", type=int, nargs="+", default=[5, 7, 15, 26])
    parser.add_argument("--repeats", type=int, default=5000, help="simulated studies per cell")
    parser.add_argument("--random-seed", type=int, default=51)
    parser.add_argument(
        "--small", action="store_true", help="5 seeds, 7 comparisons, 1,000 repeats"
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "docs" / "tables" / "verdicts" / "cells.csv"
    )
    args = parser.parse_args()
    if args.small:
        args.seeds, args.comparisons, args.repeats = [5], [7], 1000
    earlier = pd.read_csv(args.out) if args.out.is_file() else pd.DataFrame()
    rows, cells = [], tqdm(grid(args.seeds, args.comparisons), unit="cell", mininterval=2)
    for cell in cells:
        rows += measure(cell, args.repeats, args.random_seed)
    table = summary(pd.DataFrame(rows))
    if len(earlier):
        designs = ["seeds", "comparisons"]
        again = earlier.set_index(designs).index.isin(table.set_index(designs).index)
        table = pd.concat([earlier[~again], table]).sort_values(designs, kind="stable")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(args.out, index=False, lineterminator="\n")
    print(worst(table).to_string())
    print(f"wrote {args.out}")


def worst(table: pd.DataFrame) -> pd.DataFrame:
    """The worst rates and the mean power, by number of seeds, baseline and analysis."""
    groups = table.groupby(["seeds", "baseline", "analysis"], sort=False)
    return groups.agg({"either": "max", "upper": "max", "coverage": "min", "power": "mean"})


if __name__ == "__main__":
    main()
