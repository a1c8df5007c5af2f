"""Format a report's tables as Markdown."""

from collections.abc import Mapping
from pathlib import Path

import agreement_speed as agreement
import pandas as pd
from older_pages import BEFORE

from hgrpo.evaluation.comparison import pays_in_part
from hgrpo.evaluation.dose_response import ENDPOINT, TRAJECTORIES
from hgrpo.evaluation.outcomes import TEST
from hgrpo.evaluation.settings import Score
from hgrpo.evaluation.statistics import DECIDED, FEWEST_SEEDS
from hgrpo.report.endpoint_words import MEASURES, amount, endpoint_title, threshold_text
from hgrpo.report.figures.axes import COLLAPSE
from hgrpo.report.page_rows import claim, difference, power, verdict_on_gates
from hgrpo.report.words import MINUS, percent, with_interval
from hgrpo.study.axis import as_text

Tables = Mapping[str, pd.DataFrame]


def results(tables: Tables) -> str:
    """One row per arm: the study's declared endpoint and the arm's paired differences.

    Args:
        tables: the report's tables `methods`, `against_reference` and `against_sft`; optionally
            `scripted` (its players are listed below the arms) and `endpoints`. Without
            `endpoints`, the endpoint is success after the last round.
    """
    reference = tables["against_reference"].set_index("method")
    untrained = tables["against_sft"].set_index("method")
    methods = tables["methods"]
    labels = methods.drop_duplicates("method").set_index("method")["label"]
    ours = reference["baseline"].iloc[0]
    rival = untrained.iloc[0]
    against = f"against {labels[rival.baseline]} at T = {rival.baseline_temperature:g}, points"
    first, levels = _endpoint(tables)
    # If rewards are partial, the score of the last round is more informative than success.
    partial = pays_in_part(methods) and not first.endswith("score")
    title = ["score, last round" if "endpoints" in tables else "score"] if partial else []
    lines = [["arm", first, *title, f"against {labels[ours]}, points", against]]
    for row in methods.itertuples():
        name = row.label
        if row.method == rival.baseline:
            best = f", T = {row.temperature:g} (best on validation)"
            name += best if row.temperature else ", greedy"
        gain = "reference" if row.method == ours else _difference(reference, row.method)
        score = [_score(row)] if partial else []
        level = levels[row.method, row.temperature]
        lines.append([name, level, *score, gain, _difference(untrained, row.method)])
    for row in tables["scripted"].itertuples() if "scripted" in tables else ():
        name = f"{row.label}, {'training' if row.panel == 'train' else row.panel} tasks"
        score = [f"{100 * row.score:.1f}"] if partial else []
        score_text = f"{100 * row.score:.1f}" if first.endswith("score") else percent(row.success)
        lines.append([name, score_text, *score, "", ""])
    return as_markdown(lines) + _judged_again(reference, untrained)


def cost(tables: Tables) -> str:
    """One row per arm: the cost of training one seed, as a mean over seeds."""
    names = {
        "trajectories": "trajectories",
        "replies": "replies",
        "cf_branches": "of these, continuations",
        "cf_replies": "replies in continuations",
        "judged": "judge calls and cache hits",
    }
    table = tables["cost"]
    if "judge_calls" in table:
        # Which requests are cache hits depends on which jobs ran in parallel, so show the sum.
        table = table.assign(judged=table["judge_calls"] + table["judge_cache_hits"])
    columns = [name for name in names if name in table and table[name].notna().any()]
    lines = [["arm", *(names[name] for name in columns)]]
    for _, row in table.iterrows():
        numbers = ["" if pd.isna(row[name]) else f"{row[name]:,.0f}" for name in columns]
        lines.append([row["label"], *numbers])
    return as_markdown(lines)


def effects(tables: Tables) -> str:
    """One row per main effect and interaction of a factorial design."""
    lines = [["effect", "points"]]
    for row in tables["effects"].itertuples():
        lines.append([row.label.replace("\n", " "), _said(row)])
    return as_markdown(lines) + _judged_again(tables["effects"])


def areas(tables: Tables) -> str:
    """One row per trained arm: greedy test success after the first and last rounds, and the area.

    The area is the mean success over all rounds. The rows have no intervals, because the table
    `rounds` has no paired differences.
    """
    table = tables["rounds"]
    table = table[(table["panel"] == TEST) & (table["round"] > 0)]
    last = table["round"].max()
    lines = [["arm", "after round 1", f"area, rounds 1 to {last}", f"after round {last}"]]
    for label, arm in table.groupby("label", sort=False):
        success = arm.set_index("round")["success"]
        shares = (success[1], success.mean(), success[last])
        lines.append([label, *(percent(value) for value in shares)])
    return as_markdown(lines)


def verdicts(tables: Tables, baseline: str = "reference") -> str:
    """One row per analysis and number of seeds, from the simulation in `benchmarks/verdicts.py`.

    Error rates have one column for each simulated case: equal spreads of runs, spreads of 1 : 3,
    and runs that collapse. Each rate is the highest over all simulated numbers of comparisons, with
    and without an A/A twin. The upper end of its confidence interval is in parentheses.

    Args:
        baseline: value of the column `baseline`, "reference" or "fixed".
    """
    table = tables["cells"].query("baseline == @baseline")
    world = table["spreads"].map(lambda spreads: "1 : 3" if spreads != "equal" else spreads)
    table = table.assign(world=world.mask(table["collapse"], "collapse"))
    worlds = {"equal": "equal spreads", "1 : 3": "1 : 3", "collapse": "collapse"}
    lines = [["seeds", "analysis", *worlds.values(), "coverage at least", "power, equal spreads"]]
    for (seeds, analysis), rows in table.groupby(["seeds", "analysis"], sort=False):
        worst = rows.loc[rows.groupby("world")["either"].idxmax()].set_index("world")
        cells = [_error(worst.loc[name]) for name in worlds]
        power = rows.loc[rows["world"] == "equal", "power"].mean()
        cells += [f"{100 * rows['coverage'].min():.0f} %", f"{100 * power:.0f} %"]
        name = f"**{analysis}**" if analysis == "taken" else analysis
        lines.append([str(seeds), name, *cells])
    return as_markdown(lines)


def verdict_cells(tables: Tables) -> str:
    """One row per study design: highest error rates of the adopted analysis, and its power."""
    table = tables["cells"].query("analysis == 'taken'")
    lines = [["seeds", "comparisons", "against", "error", "better", "worse", "power"]]
    designs = table.groupby(["seeds", "comparisons", "baseline", "twin"], sort=True)
    for (seeds, comparisons, baseline, twin), rows in designs:
        against = "the SFT policy" if baseline == "fixed" else "flat GRPO and its twin"
        against = "flat GRPO" if baseline == "reference" and not twin else against
        error = _error(rows.loc[rows["either"].idxmax()])
        tails = [f"{100 * rows[tail].max():.1f} %" for tail in ("better", "worse")]
        equal = rows[(rows["spreads"] == "equal") & ~rows["collapse"]]
        power = f"{100 * equal['power'].mean():.0f} %"
        lines.append([str(seeds), str(comparisons), against, error, *tails, power])
    return as_markdown(lines)


def gates(tables: Tables) -> str:
    """The verdict on a study's controls, and a table with one row per gate."""
    table = tables["gates"]
    label = table.set_index("method")["label"].__getitem__
    labels = tables["methods"].set_index("method")["label"]
    reference = labels[tables["against_reference"]["baseline"].iloc[0]]
    powers = [power(row) for row in table.to_dict("records")]
    title = [f"claim, against {reference}, points", "estimate (interval)"]
    lines = [["control", *title, *["power"] * any(powers), "result"]]
    for row, power_text in zip(table.to_dict("records"), powers, strict=True):
        cells = [row["label"], claim(row["expect"], row["points"]), difference(row)]
        result, before = row["result"], row.get("result_before", row["result"])
        was = "" if result == before else f" (was {before})"
        lines.append([*cells, *[power_text] * any(powers), f"**{result}**{was}"])
    return f"**{verdict_on_gates(table, label)}**\n\n{as_markdown(lines)}"


def pairs(tables: Tables) -> str:
    """One row per declared pair of arms."""
    labels = tables["methods"].set_index("method")["label"]
    lines = [["arm", "against", "difference, points"]]
    for row in tables["pairs"].to_dict("records"):
        lines.append([row["label"], labels[row["baseline"]], _said(row)])
    return as_markdown(lines) + _judged_again(tables["pairs"])


def thresholds(tables: Tables) -> str:
    """One row per trained arm: number of trajectories until each threshold is reached.

    Cells contain restricted means with intervals, and the number of runs that reached the
    threshold.
    """
    table, score = tables["thresholds"], _score_of(tables)
    levels = sorted(table["threshold"].unique())
    lines = [["arm", *(f"to {threshold_text(level, score)}" for level in levels)]]
    for label, arm in table.groupby("label", sort=False):
        rows = arm.set_index("threshold")
        lines.append([label, *(_time(rows.loc[level], "restricted_mean") for level in levels)])
    return as_markdown(lines)


def dose_response(tables: Tables) -> str:
    """One row per arm with a known correlation with Oracle's credit; the reference is last."""
    table, score = tables["dose_response"], _score_of(tables)
    means = table[table["seed"].isna()]
    ends = means[means["measure"] == ENDPOINT]
    times = means[means["measure"] == TRAJECTORIES].set_index(["threshold", "method"])
    levels = sorted(means["threshold"].dropna().unique())
    labels = tables["methods"].drop_duplicates("method").set_index("method")["label"]
    steps = times["steps"].notna().all()
    unit, column = ("steps", "steps") if steps else ("trajectories", "value")
    to = [f"{unit} to {threshold_text(level, score)}" for level in levels]
    lines = [["correlation with the oracle", "arm", _endpoint_title(tables), *to]]
    for row in ends.itertuples():
        place = "" if pd.isna(row.correlation) else f"{row.correlation:g}"
        level_text = _amounts(row.value, row.lower, row.upper, score)
        needed = [_time(times.loc[level, row.method], column) for level in levels]
        lines.append([place, labels[row.method], level_text, *needed])
    return as_markdown(lines)


def truth(tables: Tables) -> str:
    """One row per arm, sorted by decreasing correlation with ground truth.

    For each policy with ground truth, a row has two correlations of the arm's advantages with the
    ground truth: over all turns, and within trajectories. It also shows whether the correlation
    within trajectories exceeds that of shuffled ground truth.
    """
    table = tables["truth"]
    rounds = sorted(table["round"].unique())
    policies = ["SFT policy" if number == 0 else f"after round {number}" for number in rounds]
    rows = {each: table[table["round"] == each].set_index("method") for each in rounds}
    order = table.groupby("method")["advantage_pearson"].mean().drop("shuffled")
    lines = [["arm", *policies, *(f"within a trajectory, {policy}" for policy in policies)]]
    for method in [*order.sort_values(ascending=False).index, "shuffled"]:
        of = [rows[each].loc[method] for each in rounds]
        beats = [", beats shuffled" if row["beats_shuffled"] == "yes" else "" for row in of]
        within = [_correlation(row, "within") + word for row, word in zip(of, beats, strict=True)]
        lines.append([of[0]["label"], *(_correlation(row, "advantage") for row in of), *within])
    return as_markdown(lines)


def agreement_speed(tables: Tables) -> str:
    """One row per measure of agreement: its rank correlation with the endpoint, over arms."""
    lines = [
        ["agreement on rollouts of the SFT policy", "arms", "rank correlation with the endpoint"]
    ]
    for _, row in tables["agreement_speed"].iterrows():
        lines.append(
            [agreement.MEASURES[row["measure"]], f"{row['arms']}", agreement.with_interval(row)]
        )
    return as_markdown(lines)


def _correlation(row: pd.Series, name: str) -> str:
    """`0.41 (0.37 to 0.45)`, or "" if credit is constant within trajectories."""
    value, lower, upper = (row[f"{name}_pearson{end}"] for end in ("", "_lower", "_upper"))
    if pd.isna(value):
        return ""
    return f"{value:.2f} ({lower:.2f} to {upper:.2f})".replace("-", "\N{MINUS SIGN}")


def axis(tables: Tables, name: str) -> str:
    """One row per value of an axis: the endpoint, runs ended by a rule, and collapse metrics.

    Metrics are means over seeds at the first and at the last step.
    """
    table, score = tables[f"axis_{name}"], _score_of(tables)
    measured = [each for each in COLLAPSE if f"{each}_last" in table]
    titles = [f"{COLLAPSE[each]}, first to last step" for each in measured]
    lines = [[name, _endpoint_title(tables), "runs ended by a rule", *titles]]
    for row in table.to_dict("records"):
        level = _amounts(row["endpoint"], row["lower"], row["upper"], score)
        ended = f"{row['failed']} of {row['seeds']}"
        ends = [[f"{row[f'{each}_{end}']:.2f}" for end in ("first", "last")] for each in measured]
        lines.append([as_text(row["value"]), level, ended, *(" to ".join(pair) for pair in ends)])
    return as_markdown(lines)


def greedy_rates(tables: Tables) -> dict[str, str]:
    """Map each method to the text of its greedy success rate after the last round; see `rate`."""
    methods = tables["methods"]
    return {row.method: rate(row) for row in methods[methods["temperature"] == 0].itertuples()}


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Read all CSV files of a folder; the keys are file names without suffix."""
    return {path.stem: pd.read_csv(path) for path in sorted(folder.glob("*.csv"))}


def rate(row: tuple) -> str:
    """Format a row's success rate and its interval, as `74.3 % (70.3 % to 78.0 %)`."""
    return f"{percent(row.success)} ({percent(row.lower)} to {percent(row.upper)})"


def _error(cell: pd.Series) -> str:
    """A cell's rate of false verdicts and the upper end of its interval, as `4.7 % (5.3)`."""
    return f"{100 * cell['either']:.1f} % ({100 * cell['upper']:.1f})"


def _endpoint(tables: Tables) -> tuple[str, dict[tuple[str, float], str]]:
    """Title of the endpoint, and its value with interval for each (method, temperature)."""
    if "endpoints" not in tables:
        rows = tables["methods"].itertuples()
        return _endpoint_title(tables), {(row.method, row.temperature): rate(row) for row in rows}
    declared, score = _declared(tables), _score_of(tables)
    return _endpoint_title(tables), {
        (row.method, row.temperature): _amounts(row.mean, row.lower, row.upper, score)
        for row in declared.itertuples()
    }


def _endpoint_title(tables: Tables) -> str:
    if "endpoints" not in tables:
        return "test success"
    name = _declared(tables)["endpoint"].iloc[0]
    titles = {"area": "area: mean test {}", "last_round": "test {}"}
    title = titles.get(name, f"test {{}}, {endpoint_title(name, 'success')}")
    return title.format(MEASURES[_score_of(tables)].name)


def _declared(tables: Tables) -> pd.DataFrame:
    return tables["endpoints"][tables["endpoints"]["declared"]]


def _score_of(tables: Tables) -> Score:
    """The score of an episode on which the study's endpoint is based."""
    return _declared(tables)["score"].iloc[0] if "endpoints" in tables else "success"


def _amounts(value: float, lower: float, upper: float, score: Score) -> str:
    return f"{amount(value, score)} ({amount(lower, score)} to {amount(upper, score)})"


def _time(row: pd.Series, column: str) -> str:
    """Format a restricted mean and its interval, as `1,126 (810 to 1,442), 5 of 5 runs`.

    The interval is in the columns `lower` and `upper`, or `steps_lower` and `steps_upper` for
    `steps`.
    """
    prefix, digits = ("steps_", 1) if column == "steps" else ("", 0)
    lower, upper = (row[f"{prefix}{end}"] for end in ("lower", "upper"))
    text = f"{row[column]:,.{digits}f}"
    if pd.notna(lower):
        text += f" ({lower:,.{digits}f} to {upper:,.{digits}f})".replace("-", MINUS)
    return f"{text}, {row['reached']:.0f} of {row['n_seeds']:.0f} runs"


def _score(row: tuple) -> str:
    """Format a row's mean return and its interval, as `54.1 (52.0 to 56.2)`."""
    ends = f"{100 * row.return_lower:.1f} to {100 * row.return_upper:.1f}"
    return f"{100 * row.mean_return:.1f} ({ends})".replace("-", MINUS)


def _difference(table: pd.DataFrame, method: str) -> str:
    return _said(table.loc[method]) if method in table.index else ""


def _said(row: pd.Series | Mapping | tuple) -> str:
    """Text of a comparison: difference in points, interval, verdict, and old verdict if changed."""
    row = row._asdict() if isinstance(row, tuple) else dict(row)
    text = with_interval(row["difference"], row["lower"], row["upper"])
    before, verdict = row.get(BEFORE, row["verdict"]), row["verdict"]
    if verdict in (*DECIDED, "inconclusive"):
        text += f", {verdict}"
        return text if before == verdict else f"{text} (was {before})"
    return f"{text} (was {before})" if before in DECIDED else text


def _judged_again(*families: pd.DataFrame) -> str:
    """A note for comparisons that were published before November 2026, else ""."""
    table = pd.concat(families)
    if BEFORE not in table:
        return ""
    seeds = int(table["n_seeds"].max())
    if seeds < FEWEST_SEEDS:
        return (
            f"\n\n*{seeds} seeds are too few for a [verdict](statistics.md). The intervals are "
            "from the analysis that we used until November 2026. If that analysis gave the verdict "
            '"better" or "worse", the table shows this verdict after "was".*'
        )
    changed = int((table["verdict"] != table[BEFORE]).sum())
    return (
        "\n\n*We recomputed the verdicts from the published seeds with the "
        f"[analysis](statistics.md) of November 2026. {changed} of {len(table)} verdicts changed; "
        '"was" marks an old verdict.*'
    )


def as_markdown(lines: list[list[str]]) -> str:
    """Format rows of cells as a Markdown table; the first row is the header."""
    # Escape the character `|`, because it would start a new cell. H(Z|X) contains one.
    head, *rows = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])
