"""Draws figures of the agreement between assigners: correlation heat map, trajectory gallery."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from hgrpo.report.figures import credit as pictures
from hgrpo.report.figures.credit import GAP, LONGEST, best_and_worst
from hgrpo.report.style import Drawing, canvas, cell_rows, notice, wrap
from hgrpo.trajectories.trajectory import Trajectory

LONGEST_SHOWN = 30  # maximum number of turns of a trajectory in the gallery
_SECTION = "credit"


def heat_map(
    correlations: pd.DataFrame, labels: Mapping[str, str], left_out: Sequence[str]
) -> Drawing:
    """Draw correlations of all pairs of methods: `pooled` above the diagonal, `within` below.

    Args:
        correlations: from `evaluation.credit_correlation.correlations`.
        labels: the label of each displayed method, in order.
        left_out: sentences to append to the caption, e.g. on omitted methods.
    """
    names = list(labels)
    place = {name: index for index, name in enumerate(names)}
    pairs = correlations[
        correlations["method_a"].isin(names) & correlations["method_b"].isin(names)
    ]
    matrix = np.full((len(names), len(names)), np.nan)
    for row in pairs.itertuples():
        first, second = sorted((place[row.method_a], place[row.method_b]))
        matrix[first, second], matrix[second, first] = row.pooled, row.within
    if len(names) < 2:
        figure = notice("Fewer than two methods\nwhose credit varies")
    else:
        figure, axes = canvas(height=0.9 + 0.27 * max(len(names), 3), grid="")
        _draw_matrix(axes[0, 0], matrix, list(labels.values()))
    caption = (
        "Spearman's rank correlation between two methods' credit for the same turns, times 100: "
        "100 means the same order, -100 the reverse order, blank undefined. Above the diagonal, "
        "all turns are pooled, so differences between trajectories count. Below the diagonal is "
        "the mean over trajectories in which both methods' credit varies, so only the order of "
        "turns within a trajectory counts."
    )
    return Drawing(
        "agreement",
        _SECTION,
        "Do the assigners agree?",
        " ".join([caption, *left_out]),
        f"Rank correlations of the credit of {len(names)} methods. {_extremes(pairs, labels)}The "
        "numbers are in agreement.csv.",
        figure,
        pairs,
    )


def pick(
    lengths: Sequence[int],
    returns: Sequence[float],
    groups: Sequence[int],
    complete: Sequence[bool],
) -> list[tuple[str, int]]:
    """Choose the best, worst and longest trajectory for the gallery, as (title, index).

    Best and worst are the first trajectories with the highest and the lowest return in the first
    group with different returns, among trajectories of at most `LONGEST` turns. The longest is the
    first trajectory with the most turns, up to `LONGEST_SHOWN`. If possible, only trajectories
    credited by every method are considered.

    A choice without a trajectory is omitted. The longest trajectory is also omitted if it is
    already chosen as the best or the worst.

    Args:
        lengths, returns, groups: number of turns, return and group of each trajectory.
        complete: whether each trajectory is credited by every method.
    """
    table = pd.DataFrame(
        {"length": lengths, "paid": returns, "group": groups, "complete": complete}
    )
    table = table[(table["length"] > 0) & (table["length"] <= LONGEST_SHOWN)]
    short = table[table["length"] <= LONGEST]
    ends = best_and_worst(short[short["complete"]], "group") or best_and_worst(short, "group")
    chosen = [(title, int(index)) for title, index in zip(("best", "worst"), ends, strict=False)]
    preferred = table[table["complete"]] if table["complete"].any() else table
    if len(preferred):
        longest = int(preferred["length"].idxmax())
        if longest not in ends:
            chosen.append(("longest", longest))
    return chosen


def gallery_table(
    picked: Sequence[tuple[str, int]],
    trajectories: Sequence[Trajectory],
    steps: Sequence[int],
    credits: Mapping[str, np.ndarray],
) -> pd.DataFrame:
    """Data of the gallery, one row per turn and method; `picked` is from `pick`.

    Args:
        steps: step of each trajectory.
        credits: each method's credit for the turns of all trajectories, concatenated.
    """
    starts = np.cumsum([0, *(len(trajectory.turns) for trajectory in trajectories)])
    of_trajectory = ["picture", "step", "task_id", "goal", "rollout", "env_return"]
    of_turn = ["turn", "observation", "action", "admissible", "method", "credit"]
    rows = []
    for title, index in picked:
        t, start = trajectories[index], starts[index]
        head = [title, steps[index], t.task.task_id, t.goal, t.rollout, t.env_return]
        rows += [
            [*head, number, turn.observation, turn.action, turn.admissible, method, value]
            for method, credit in credits.items()
            for number, (turn, value) in enumerate(zip(t.turns, credit[start:], strict=False))
        ]
    table = pd.DataFrame(rows, columns=of_trajectory + of_turn)
    return table.assign(shade=pictures.shades(table))


def gallery(table: pd.DataFrame, labels: Mapping[str, str]) -> Drawing:
    """Plot the trajectories of a `gallery_table`, with turns coloured by each method's credit."""
    drawn = [picture for _, picture in table.groupby("picture", sort=False)]
    titles = [
        f"{p['picture'].iloc[0]}, {p['env_return'].iloc[0]:g} paid: {p['goal'].iloc[0]}"
        for p in drawn
    ]
    empty = "No trajectory to show"
    figure = pictures.strips(drawn, titles, labels) if drawn else notice(empty)
    return Drawing(
        "gallery",
        _SECTION,
        "Who earned the reward?",
        "The same trajectories with the credit of every method. Blue is positive and orange is "
        "negative, relative to the method's largest value in these plots. White turns have a "
        "credit of zero or were not credited by the method.",
        f"Credit of {len(labels)} methods for {len(drawn)} trajectories, turn by turn. "
        "The numbers are in gallery.csv.",
        figure,
        table,
    )


def _draw_matrix(ax, matrix: np.ndarray, labels: Sequence[str]) -> None:
    pictures.draw_cells(ax, np.nan_to_num(matrix))
    for (row, column), value in np.ndenumerate(matrix):
        look = {"fontsize": 7 if len(labels) > 8 else 8.5}
        if row == column:
            text = str(row + 1)
            look |= {"color": pictures.CELL_MUTED, "fontweight": "bold"}
        else:
            text = f"{100 * value:.0f}".replace("-0", "0") if np.isfinite(value) else ""
            look |= {"color": pictures.CELL_INK}
        pictures.write_in_cell(ax, (row, column), text, **look)
    numbered = [f"{wrap(label, 20)}{GAP}{index + 1}" for index, label in enumerate(labels)]
    cell_rows(ax, numbered, fontsize=7.5)
    ax.set_xticks([])
    ax.set_title("above: all turns pooled", fontsize=9, loc="right")
    ax.set_xlabel("below: mean within a trajectory", fontsize=9, fontweight="bold", loc="left")


def _extremes(pairs: pd.DataFrame, labels: Mapping[str, str]) -> str:
    known = pairs.dropna(subset="within")
    if known.empty:
        return ""
    sentences = []
    for word, index in (("Most", known["within"].idxmax()), ("Least", known["within"].idxmin())):
        row = known.loc[index]
        pair = f"{labels[row['method_a']]} and {labels[row['method_b']]}"
        sentences.append(f"{word} similar within a trajectory: {pair}, {row['within']:.2f}. ")
    return "".join(sentences)
