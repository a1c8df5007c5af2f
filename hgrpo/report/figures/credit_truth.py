"""Draws figures of credit against ground truth: correlation and cost, updates, and sign errors."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FormatStrFormatter, LogLocator

from hgrpo.evaluation.truth.measured import OTHER, SHUFFLED, TRUTH, YES
from hgrpo.report.figures.credit import CELL_INK, CELL_MUTED, draw_cells, write_in_cell
from hgrpo.report.style import GRID, INK, MUTED, PAPER, Drawing, canvas, cell_rows, wrap

_SECTION = "truth"
_COLOURS = ("#9aa3ad", "#0072b2", "#d55e00", "#009e73")
_MARKERS = ("o", "s", "D", "^")
# Largest turn number in the figure of sign errors.
_TURNS = 12


def policy_name(round: int) -> str:
    """Display name of the policy after a round."""
    return "SFT policy" if round == 0 else f"after round {round}"


def closest(table: pd.DataFrame) -> Drawing:
    """Plot the cost of each method and its correlation with ground truth; `table` is truth.csv."""
    rounds = sorted(table["round"].unique())
    last = table[table["round"] == rounds[-1]].set_index("method")
    methods = last.drop(index=SHUFFLED)
    ranked = methods.sort_values("advantage_pearson", ascending=False, na_position="last")
    names = list(ranked.index)
    figure, axes = canvas(
        1, 2, height=1.4 + 0.3 * len(names), grid="x", sharey=True, width_ratios=[1.3, 1]
    )
    left, right = axes[0]
    for place, round in enumerate(rounds):
        rows = table[table["round"] == round].set_index("method")
        colour, marker = _look(place, len(rounds))
        shift = 0.16 * (place - (len(rounds) - 1) / 2)
        _intervals(left, rows.reindex(names), shift, colour, marker, policy_name(round))
    null = last.loc[SHUFFLED]
    low, high = null["advantage_pearson_lower"], null["advantage_pearson_upper"]
    if np.isfinite([low, high]).all():
        left.axvspan(low, high, color=GRID, zorder=0, label="truth, shuffled")
    left.axvline(0, color=INK, linewidth=1)
    left.set_xlabel("correlation with the truth")
    left.set_yticks(range(len(names)), [wrap(label, 20) for label in ranked["label"]], fontsize=8)
    left.set_ylim(len(names) - 0.5, -0.5)
    left.tick_params(axis="y", length=0)
    left.legend(loc="upper center", bbox_to_anchor=(0.3, -0.16), fontsize=8)
    _prices(right, ranked)
    ranking = _ranking(ranked)
    columns = ["round", "method", "label", "seconds", "dollars", "extra_trajectories"]
    columns += [f"advantage_pearson{end}" for end in ("", "_lower", "_upper")]
    columns += [f"within_pearson{end}" for end in ("", "_lower", "_upper")]
    columns += ["beats_shuffled"]
    return Drawing(
        "closest",
        _SECTION,
        "Which credit is closest to ground truth, and at what cost?",
        "Left: correlation of a method's advantages with the ground-truth advantages of the same "
        "turns, corrected for noise in the latter, with 95 % intervals over groups; 1 is perfect. "
        "The band is ground truth shuffled within each trajectory "
        f"({policy_name(rounds[-1])}). Hollow points do not significantly beat shuffled ground "
        "truth within trajectories. Right: seconds per credited trajectory, with other costs as "
        "text. " + ranking,
        f"Correlation with ground truth and cost of {len(names)} methods. {ranking} The numbers "
        "are in closest.csv.",
        figure,
        table[columns],
    )


def updates(table: pd.DataFrame) -> Drawing:
    """Plot the cosine between each method's update and the true one, by groups per update.

    `table` has the rows of truth_gradients.csv for one policy.
    """
    methods = table[(table["method"] != TRUTH) & (table["groups"] <= table["of_groups"])]
    figure, axes = canvas(height=3.8)
    ax = axes[0, 0]
    one = methods[methods["groups"] == 1].set_index("method")
    ranked = one["cosine_same_groups"].dropna().sort_values(ascending=False).index
    colours = dict(zip(ranked, _COLOURS[1:], strict=False))
    for name, rows in methods.groupby("method", sort=False):
        look = {"color": GRID, "linewidth": 1, "zorder": 1}
        if name in colours:
            look = {"color": colours[name], "label": rows["label"].iloc[0], "marker": "."}
        ax.plot(rows["groups"], rows["cosine_same_groups"], **look)
    ax.set_xscale("log", base=2)
    ticks = sorted(methods["groups"].unique())
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    for height in (0, 1):
        ax.axhline(height, color=MUTED, linewidth=1, linestyle=":")
    ax.set_xlabel("groups in an update")
    ax.set_ylabel("cosine with the truth's update")
    if colours:
        ax.legend(fontsize=8, loc="lower right")
    named = ", ".join(one.loc[list(colours), "label"])
    return Drawing(
        "updates",
        _SECTION,
        "Which update points in the right direction?",
        "Cosine between a method's update and the update from exact ground truth on the same "
        "groups. It is below 1 because of noise, which averages out over more groups, and because "
        "of bias, which does not. The three best methods at one group are labelled; the others are "
        "grey. Lines end at the number of groups credited by the method.",
        f"Cosine with the ground-truth update by number of groups; the best are {named}. "
        "Intervals, bias, variance and signal-to-noise ratio are in updates.csv.",
        figure,
        table,
    )


def mistakes(table: pd.DataFrame) -> Drawing:
    """Plot sign accuracy by turn number and by kind of action, as a heat map.

    `table` has the rows of truth_errors.csv for one policy.
    """
    labels = table.drop_duplicates("method").set_index("method")["label"]
    turns = table[table["by"] == "turn"]
    turns = turns[turns["key"].astype(int) <= _TURNS]
    actions = table[table["by"] == "action"]
    parts = [(turns, sorted(turns["key"].unique(), key=int)), (actions, _kinds(actions))]
    figure, axes = canvas(2, 1, height=2.2 + 0.44 * max(len(labels), 2), grid="")
    for ax, (part, keys), title in zip(
        axes.flat, parts, ("by turn", "by first word of the action"), strict=True
    ):
        cells = part.pivot(index="method", columns="key", values="sign_accuracy")
        cells = cells.reindex(index=labels.index, columns=keys).to_numpy(dtype=float)
        draw_cells(ax, 2 * np.nan_to_num(cells, nan=0.5) - 1)
        for place, value in np.ndenumerate(cells):
            if np.isfinite(value):
                colour = CELL_INK if abs(value - 0.5) > 0.1 else CELL_MUTED
                write_in_cell(ax, place, f"{100 * value:.0f}", fontsize=6.5, color=colour)
        cell_rows(ax, [wrap(label, 24) for label in labels], fontsize=7)
        ax.set_xticks(
            np.arange(len(keys)) + 0.5,
            [str(key) for key in keys],
            fontsize=7,
            rotation=0 if part is turns else 45,
            ha="center" if part is turns else "right",
        )
        ax.set_title(title, fontsize=9)
    return Drawing(
        "mistakes",
        _SECTION,
        "On which turns do methods err?",
        "Share of turns whose advantage has the correct sign, in per cent, among turns with a "
        "clear ground truth (more than three standard errors from 0). Blue is above and orange "
        "below 50, the level of random guesses. An advantage of 0 counts as half correct. Blank: "
        "no turn with a clear ground truth.",
        f"Sign accuracy of {len(labels)} methods by turn number and kind of action; the numbers "
        "are in mistakes.csv.",
        figure,
        table,
    )


def _look(place: int, number: int) -> tuple[str, str]:
    index = 1 if place == number - 1 else (0 if place == 0 else 1 + place)
    return _COLOURS[index % len(_COLOURS)], _MARKERS[index % len(_MARKERS)]


def _intervals(
    ax: Axes, table: pd.DataFrame, shift: float, colour: str, marker: str, label: str
) -> None:
    middle = table["advantage_pearson"].to_numpy(dtype=float)
    ends = table[["advantage_pearson_lower", "advantage_pearson_upper"]].to_numpy(dtype=float).T
    places = np.arange(len(table)) + shift
    ax.hlines(places, *ends, color=colour, linewidth=1.6)
    better = (table["beats_shuffled"] == YES).to_numpy()
    look = {"color": colour, "markersize": 4.5, "linestyle": "none", "marker": marker}
    ax.plot(middle[~better], places[~better], markerfacecolor=PAPER, **look)
    ax.plot(middle[better], places[better], label=label, **look)


def _prices(ax: Axes, ranked: pd.DataFrame) -> None:
    seconds = ranked["seconds"].to_numpy(dtype=float)
    drawn = np.maximum(seconds, 1e-6)
    ax.plot(drawn, np.arange(len(drawn)), "o", color=MUTED, markersize=4.5)
    ax.set_xscale("log")
    ax.set_xlim(drawn.min() / 5, drawn.max() * 5)
    ax.xaxis.set_major_locator(LogLocator(numticks=4))
    ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    ax.minorticks_off()
    ax.set_xlabel("seconds a trajectory")
    for place, row in enumerate(ranked.itertuples()):
        also = [f"+{row.extra_trajectories:.0f} played"] if row.extra_trajectories else []
        also += [f"{row.dollars:.2g} dollars"] if row.dollars else []
        if also:
            ax.text(
                drawn[place], place - 0.2, ", ".join(also), fontsize=7, color=MUTED, ha="center"
            )


def _ranking(ranked: pd.DataFrame) -> str:
    known = ranked.dropna(subset="advantage_pearson")
    if known.empty:
        return "The advantages of all methods are constant."
    best = known.iloc[0]
    sentences = [f"Closest: {best['label']}, {best['advantage_pearson']:.2f}."]
    weak = list(known["label"][known["beats_shuffled"] != YES])
    if weak:
        sentences.append(
            "Not significantly better than shuffled ground truth within trajectories: "
            f"{', '.join(weak)}."
        )
    return " ".join(sentences)


def _kinds(actions: pd.DataFrame) -> list[str]:
    turns = actions.groupby("key")["turns"].max()
    order = turns.sort_values(ascending=False, kind="stable").index
    return [key for key in order if key != OTHER] + [key for key in order if key == OTHER]
