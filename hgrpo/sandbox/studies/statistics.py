"""Tables of a study: arms with confidence intervals, and pairs of arms with verdicts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from hgrpo.atomic import atomic_file
from hgrpo.errors import UserError, did_you_mean
from hgrpo.evaluation.over_seeds import equivalence, seed_bootstrap, seed_interval
from hgrpo.evaluation.statistics import ALPHA, of_pairs
from hgrpo.games.streams import generator
from hgrpo.report.csv_file import write_csv
from hgrpo.report.words import DASH
from hgrpo.sandbox.studies.measures import Measured, horizon, measure
from hgrpo.sandbox.studies.results import ARMS, PAIRS, TABLES, read_rows, read_summary
from hgrpo.sandbox.studies.study import Metric, Pair, SandboxStudy

# Costs of an arm per seed, if logged.
COSTS = ("rollouts", "verifier_calls", "tokens", "updates", "kl_from_init")
# A mean is marked if its difference from the published mean exceeds this number of published
# standard deviations.
FAR = 3.0
_REPLICATES = 10_000
_UNDECIDED = ("inconclusive", "one seed", "not reached")
# Number of seeds of the original's runs.
_PUBLISHED_SEEDS = 3
# The original prints numbers with this precision.
_PRINTED = 1e-4
# Columns of tables.md.
_ARM_COLUMNS = ("metric", "arm", "n_seeds", "mean", "lower", "upper", "deviation", "reached")
_ARM_COLUMNS += ("published", "published_deviation", "far", "rollouts", "updates", "seconds")
_PAIR_COLUMNS = ("kind", "arm", "against", "of", "difference", "lower", "upper", "p_holm")
_PAIR_COLUMNS += ("p_equivalent_holm", "verdict", "published", "said", "claim")


def write_statistics(study: SandboxStudy, runs: Mapping[str, Path], target: Path) -> None:
    """Write arms.csv, pairs.csv and tables.md to the folder `target`."""
    rows = read_rows(study, runs)
    seconds = {label: float(read_summary(folder)["seconds"]) for label, folder in runs.items()}
    arms, pairs = arm_table(study, rows, seconds), pair_table(study, rows)
    text = [markdown(arms, _ARM_COLUMNS)]
    if len(pairs):
        text.append(markdown(pairs, _PAIR_COLUMNS))
    for name, table in ((ARMS, arms), (PAIRS, pairs)):
        with atomic_file(target / name) as path:
            write_csv(table, path)
    with atomic_file(target / TABLES) as path:
        path.write_text("\n".join(text), encoding="utf-8")


def arm_table(
    study: SandboxStudy, rows: Mapping[str, pd.DataFrame], seconds: Mapping[str, float]
) -> pd.DataFrame:
    """One row per metric and arm: mean over seeds with t and bootstrap intervals, and costs.

    `deviation` is the standard deviation over seeds. For a time to a threshold, `reached` is the
    number of seeds that reach the threshold, and times are cut off at `horizon` (see
    `measures.horizon`). `published` and `published_deviation` are the mean and standard deviation
    of the original. `far` is the difference from the original's mean, divided by the original's
    deviation. `p_published` is the p-value of Welch's test between our seeds and the original's
    three seeds. Costs are means over seeds.

    Raises:
        UserError: no arm logs a metric's column, or a seed has no value of a metric.
    """
    table = []
    for metric in (study.metric, *study.also):
        if metric is not study.metric and not any(metric.column in log for log in rows.values()):
            known = {str(name) for log in rows.values() for name in log}
            near = did_you_mean(metric.column, known)
            raise UserError(f"also: no arm has a column {metric.column!r}{near}")
        for label, log in rows.items():
            if metric is not study.metric and metric.column not in log:
                continue
            measured = measure(log, metric, label)
            mean, deviation = study.published.get(label, {}).get(metric.key, (np.nan, np.nan))
            line = {
                "metric": metric.text,
                "primary": metric is study.metric,
                "arm": label,
                **_described(measured, metric, f"{label} {metric.text}"),
                "published": mean,
                "published_deviation": np.nan if deviation is None else deviation,
            }
            line["far"] = _distance(line["mean"], mean, deviation)
            line["p_published"] = _p_published(line)
            ends = log.groupby("seed").last()
            line |= {name: float(ends[name].mean()) for name in COSTS if name in ends}
            table.append(line | {"seconds": seconds[label]})
    return pd.DataFrame(table)


def _distance(mean: float, published: float, deviation: float | None) -> float:
    """Difference from the published mean, divided by the published deviation; NaN if unknown.

    The original printed four decimals. If the printed deviation is 0, the result is 0 if both means
    would be printed identically, and infinite otherwise.
    """
    if deviation is None or np.isnan(deviation):
        return np.nan
    apart = mean - published
    if deviation > 0:
        return apart / deviation
    return 0.0 if abs(apart) <= _PRINTED / 2 else float(np.copysign(np.inf, apart))


def _p_published(line: Mapping[str, float]) -> float:
    """p-value of Welch's test between our seeds and the original's.

    The original's standard deviation is estimated from three seeds, so a mean may differ by many
    deviations by chance alone. The result is NaN if a standard deviation is 0 or unknown.
    Source: Welch 1947, "The generalization of 'Student's' problem when several different population
    variances are involved" (https://doi.org/10.1093/biomet/34.1-2.28).
    """
    ours, theirs = line["deviation"], line["published_deviation"]
    if not (ours > 0 and theirs > 0):
        return np.nan
    of_ours = (line["mean"], ours, line["n_seeds"])
    of_theirs = (line["published"], theirs, _PUBLISHED_SEEDS)
    return float(stats.ttest_ind_from_stats(*of_ours, *of_theirs, equal_var=False).pvalue)


def _described(measured: Measured, metric: Metric, stream: str) -> dict[str, float]:
    known = horizon(measured)
    values = measured.until(known)
    estimate = seed_interval(values)
    low, high = seed_bootstrap(values, generator("bootstrap", stream), _REPLICATES)
    timed = metric.at == "time"
    return {
        "n_seeds": len(values),
        "mean": estimate.mean,
        "lower": estimate.lower,
        "upper": min(estimate.upper, known) if timed else estimate.upper,
        "bootstrap_lower": low,
        "bootstrap_upper": high,
        "deviation": float(np.std(values, ddof=1)) if len(values) > 1 else np.nan,
        "reached": int(measured.reached.sum()) if timed else np.nan,
        "horizon": known if timed else np.nan,
    }


def pair_table(study: SandboxStudy, rows: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Compare the arms of each pair by the study's metric; differences are paired by seed.

    Only the pairs listed under `pairs` get corrected p-values and a verdict (see `judge`). Pairs
    whose `kind` is "identical" or "again" do not. The two halves of an A/A pair ("again") have
    different seeds, which are paired in order. `p_equivalent` is the p-value of the equivalence
    test (two one-sided tests) with the metric's margin. `unreached` is the share of seeds that do
    not reach the threshold of the metric; if it is positive, `p_equivalent` is 1.
    """
    table = [_compared(study, rows, pair, "pair") for pair in study.pairs]
    judge(table, study.metric)
    table += [_compared(study, rows, pair, "identical") for pair in study.identical]
    if study.again:
        pair = Pair(arm=study.other, against=study.again)
        table.append(_compared(study, rows, pair, "again"))
    return pd.DataFrame(table)


def judge(pairs: Sequence[dict], metric: Metric) -> None:
    """Add `p_holm`, `p_equivalent_holm`, `verdict` and `claim` to the rows of a study's pairs.

    Holm's correction is applied to all tests of difference and of equivalence together (see
    `statistics.of_pairs`). The probability of any false claim in a study is therefore at most 5%.
    """
    margin = metric.margin is not None
    equivalent = [line["p_equivalent"] for line in pairs if margin]
    different, equivalent = of_pairs([line["p"] for line in pairs], equivalent)
    for place, line in enumerate(pairs):
        line["p_holm"] = different[place]
        line["p_equivalent_holm"] = equivalent[place] if margin else 1.0
        line["verdict"] = _verdict(line, metric)
        line["claim"] = _claim(line)


def _compared(
    study: SandboxStudy, rows: Mapping[str, pd.DataFrame], pair: Pair, kind: str
) -> dict[str, object]:
    metric = study.metric
    difference, unreached = _difference(rows, pair, metric)
    testable = metric.margin is not None and not unreached
    estimate = seed_interval(difference)
    stream = generator("bootstrap", pair.arm, str(pair.against), metric.text)
    low, high = seed_bootstrap(difference, stream, _REPLICATES)
    spread = float(np.std(difference, ddof=1)) if len(difference) > 1 else np.nan
    return {
        "kind": kind,
        "arm": pair.arm,
        "against": str(pair.against),
        "of": pair.of,
        "metric": metric.text,
        "n_seeds": len(difference),
        "difference": estimate.mean,
        "lower": estimate.lower,
        "upper": estimate.upper,
        "bootstrap_lower": low,
        "bootstrap_upper": high,
        "effect": estimate.mean / spread if spread > 0 else np.nan,
        "p": estimate.p_value,
        "p_equivalent": equivalence(difference, metric.margin) if testable else 1.0,
        "unreached": unreached,
        "published": _published(study, pair),
        "said": pair.said or "",
    }


def _difference(
    rows: Mapping[str, pd.DataFrame], pair: Pair, metric: Metric
) -> tuple[np.ndarray, float]:
    """Return `arm` minus `against` for each seed, [S], and the share of seeds without a time.

    Times to a threshold, or a number given as `against`, are cut off at a common horizon. Two seeds
    that never reach the threshold therefore differ by 0. The share is the fraction of seeds that do
    not reach the threshold, and 0 for metrics without a threshold.
    """
    mine = measure(rows[pair.arm], metric, pair.arm)
    if isinstance(pair.against, float):
        known = horizon(mine)
        return mine.until(known) - min(pair.against, known), 1 - mine.reached.mean()
    theirs = measure(rows[pair.against], metric, pair.against)
    if metric.at != "time":
        return mine.values - theirs.values, 0.0
    known = horizon(mine, theirs)
    reached = np.concatenate([mine.reached, theirs.reached])
    return mine.until(known) - theirs.until(known), 1 - reached.mean()


def _published(study: SandboxStudy, pair: Pair) -> float:
    key = study.metric.key
    mine = study.published.get(pair.arm, {}).get(key, (np.nan,))[0]
    if isinstance(pair.against, float):
        return mine - pair.against
    return mine - study.published.get(pair.against, {}).get(key, (np.nan,))[0]


def _verdict(line: Mapping[str, object], metric: Metric) -> str:
    """The verdict on a pair: equivalent, different or undecided.

    A pair that is both equivalent and significantly different counts as equivalent, because a
    difference below the declared margin is irrelevant.
    """
    if line["n_seeds"] == 1:
        return "one seed"
    if line["p_equivalent_holm"] < ALPHA:
        return "equivalent"
    if line["unreached"] == 1:
        return "not reached"
    if line["p_holm"] < ALPHA and line["difference"] != 0:
        higher = line["difference"] > 0
        if metric.better == "neither":
            return "higher" if higher else "lower"
        return "better" if higher == (metric.better == "higher") else "worse"
    return "inconclusive"


def _claim(line: Mapping[str, object]) -> str:
    """Return "holds", "fails" or "open" for the original conclusion `said`; "" without one."""
    if not line["said"]:
        return ""
    if line["verdict"] == line["said"]:
        return "holds"
    return "open" if line["verdict"] in _UNDECIDED else "fails"


def markdown(table: pd.DataFrame, columns: Sequence[str]) -> str:
    """Format the selected columns of a table as Markdown, with four significant digits."""
    columns = [name for name in columns if name in table and not table[name].isna().all()]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in table[columns].to_dict("records"):
        lines.append("| " + " | ".join(_cell(row[name]) for name in columns) + " |")
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return DASH if np.isnan(value) else f"{value:.4g}"
    return str(value).replace("|", "\\|")
