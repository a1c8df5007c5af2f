"""Draws credit plots: every arm's credit for each turn of the same trajectories."""

from collections.abc import Mapping, Sequence
from textwrap import shorten

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from hgrpo.report.arms import Arms
from hgrpo.report.logs import TRAJECTORY
from hgrpo.report.style import PAPER, Drawing, canvas, cell_rows, wrap

_TITLE = 130  # maximum length of a title in characters; longer goals are truncated
POSITIVE, NEGATIVE = "#3a86c8", "#e07b00"
LONGEST = 16  # maximum number of turns for a legible plot
COLOURS = LinearSegmentedColormap.from_list("credit", [NEGATIVE, PAPER, POSITIVE])
# Cells show numbers only if there are at most `MOST_NUMBERED` columns. Column names are horizontal
# only if there are at most `MOST_ABREAST` columns.
MOST_NUMBERED, MOST_ABREAST = 6, 4
# Cells stay light in the dark theme, so their text must stay dark. Unlike INK and MUTED, these
# colours are not replaced by the theme.
CELL_INK, CELL_MUTED = "#23272e", "#6b727c"
# Columns in the plots of an arm's own trajectories.
OWN = ("credit", "advantage", "progress")
GAP = "\u00a0" * 3  # no-break spaces, because browsers collapse ordinary spaces


def credit_table(turns: Mapping[str, pd.DataFrame], arms: Arms) -> pd.DataFrame:
    """One or two trajectories of a group with every arm's credit, one row per turn and arm.

    The trajectories are selected by a fixed rule from the reference arm's rollouts of at most
    `LONGEST` turns, or from all its rollouts if all are longer. Groups are sorted by task id. From
    the first group with different returns, take the first rollout with the highest return and the
    first with the lowest. Without such a group, take the first rollout of the first group. Arms
    whose actions differ from the reference arm's are omitted.

    Args:
        turns: each arm's turns in the first batch of the first round (`logs.read_first_turns`).
    """
    named = [name for name in arms.trained if name in turns and len(turns[name])]
    if not named:
        return pd.DataFrame()
    lead = turns[arms.reference if arms.reference in named else named[0]]
    parts = []
    for task_id, rollout in _pick(lead):
        actions = _trajectory(lead, task_id, rollout)["action"].tolist()
        for name in named:
            mine = _trajectory(turns[name], task_id, rollout)
            if mine["action"].tolist() == actions:
                parts.append(mine.assign(method=name, env_return=mine["env_reward"].sum()))
    table = pd.concat(parts, ignore_index=True)
    columns = [*TRAJECTORY, "goal", "env_return", "turn", "observation", "action", "admissible"]
    return table[[*columns, "method", "credit", "advantage"]]


def credit_strips(table: pd.DataFrame, arms: Arms) -> Drawing | None:
    """Plot each trajectory with a column per arm, with turns coloured by credit."""
    if table.empty:
        return None
    arms_shown = [name for name in arms.trained if name in set(table["method"])]
    pictures = [
        picture.assign(shade=shades(picture))
        for _, picture in table.groupby(TRAJECTORY, sort=False)
    ]
    titles = [f"{p['goal'].iloc[0]} ({p['env_return'].iloc[0]:g} paid)" for p in pictures]
    figure = strips(pictures, titles, {name: arms.label(name) for name in arms_shown})
    return Drawing(
        "credit",
        "credit",
        "Who earned the reward?",
        "The same trajectories with the credit of every arm. Colours are scaled per arm.",
        f"Credit of {len(pictures)} trajectories turn by turn for {len(arms_shown)} arms; the "
        "numbers are in credit.csv and in the table of the report.",
        figure,
        table,
    )


def own_credit_table(turns: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One or two trajectories played by each arm, with the arm's credit, one row per turn.

    They are selected as in `credit_table`.

    Args:
        turns: each arm's turns in the first batch of its last round (`logs.read_last_turns`).
    """
    parts = []
    for name, mine in turns.items():
        for task_id, rollout in _pick(mine):
            played = _trajectory(mine, task_id, rollout)
            parts.append(played.assign(method=name, env_return=played["env_reward"].sum()))
    if not parts:
        return pd.DataFrame()
    columns = [*TRAJECTORY, "goal", "env_return", "turn", "observation", "action", "admissible"]
    return pd.concat(parts, ignore_index=True)[["method", "round", *columns, *OWN]]


def own_credit_strips(table: pd.DataFrame, arms: Arms) -> Drawing | None:
    """Plot each trajectory with the columns `OWN`; None if there are no trajectories."""
    if table.empty:
        return None
    pictures, titles = [], []
    for (name, *_), picture in table.groupby(["method", *TRAJECTORY], sort=False):
        columns = [picture.assign(method=column, credit=picture[column]) for column in OWN]
        long = pd.concat(columns, ignore_index=True)
        pictures.append(long.assign(shade=shades(long)))
        paid = f"{picture['env_return'].iloc[0]:g} paid"
        titles.append(f"{arms.label(name)}: {picture['goal'].iloc[0]} ({paid})")
    return Drawing(
        "credit_last_round",
        "credit",
        "Credit after the last fit",
        "Trajectories of each arm in the first batch of the last round. Colours are scaled per "
        "column.",
        f"Credit of {len(pictures)} trajectories turn by turn; the numbers are in "
        "credit_last_round.csv and in the tables of the report.",
        strips(pictures, titles, {column: column for column in OWN}),
        table,
    )


def strips(
    pictures: Sequence[pd.DataFrame], titles: Sequence[str], labels: Mapping[str, str]
) -> Figure:
    """Draw one plot per trajectory, with a row per turn and a column per method.

    Args:
        pictures: one table per trajectory, with columns turn, action, method, credit (written into
            the cells if there are few methods) and shade (-1 to 1; NaN leaves a cell blank).
        titles: the title of each plot.
        labels: the label of each method, in the order of the columns.
    """
    lengths = [picture["turn"].nunique() for picture in pictures]
    numbered = len(labels) <= MOST_NUMBERED
    abreast = len(labels) <= MOST_ABREAST
    names = [name.replace(" ", "\n") if abreast else wrap(name) for name in labels.values()]
    longest = max(len(line) for name in names for line in name.split("\n"))
    below = 1.0 if abreast else 0.5 + 0.075 * longest
    figure, axes = canvas(
        len(pictures),
        height=sum((0.24 if numbered else 0.19) * length + below for length in lengths) + 0.3,
        grid="",
        height_ratios=lengths,
    )
    for ax, picture, title in zip(axes.flat, pictures, titles, strict=True):
        _strip(ax, picture, list(labels), numbered)
        size, rotation = 8 if numbered else 6.5, 0 if abreast else 90
        ax.set_xticks(np.arange(len(names)) + 0.5, names, fontsize=size, rotation=rotation)
        # Align titles right, so that a long goal can extend to the left, above the actions.
        short = shorten(title, _TITLE, placeholder=" ...")
        ax.set_title(wrap(short, 46), fontsize=9, loc="right")
    return figure


def _strip(ax: Axes, picture: pd.DataFrame, methods: list[str], numbered: bool) -> None:
    shade, credit = (
        picture.pivot(index="turn", columns="method", values=name).reindex(columns=methods)
        for name in ("shade", "credit")
    )
    draw_cells(ax, shade.to_numpy())
    for place, value in np.ndenumerate(credit.to_numpy()) if numbered else ():
        if np.isfinite(value):
            text, colour = (f"{value:+.2f}", CELL_INK) if value else ("0", CELL_MUTED)
            write_in_cell(ax, place, text, fontsize=8, color=colour)
    actions = picture.drop_duplicates("turn")["action"]
    longest = 34 if numbered else 26
    labels = [f"{_short(action, longest)}{GAP}{turn + 1}" for turn, action in enumerate(actions)]
    cell_rows(ax, labels, fontsize=8 if numbered else 7)


def draw_cells(ax: Axes, shade: np.ndarray) -> None:
    """Colour a matrix of unit cells by shade, -1 to 1; NaN leaves a cell blank."""
    ax.pcolormesh(shade, cmap=COLOURS, vmin=-1, vmax=1, edgecolors=PAPER, linewidth=1)


def write_in_cell(ax: Axes, place: tuple[int, int], text: str, **look: object) -> None:
    """Write text in the centre of the cell at (row, column)."""
    row, column = place
    ax.text(column + 0.5, row + 0.5, text, ha="center", va="center", **look)


def shades(table: pd.DataFrame, column: str = "credit") -> pd.Series:
    """Divide each method's values in `column` by their largest absolute value, unless this is 0."""
    largest = table[column].abs().groupby(table["method"]).transform("max")
    return table[column] / largest.where(largest > 0, 1.0)


def best_and_worst(rollouts: pd.DataFrame, group: str) -> list:
    """Indices of the best and the worst rollout in the first group with different returns.

    Empty if the returns are equal in every group. `rollouts` has one row per rollout, with the
    return in the column `paid` and the group in the column or index level `group`.
    """
    for _, members in rollouts.groupby(group):
        if members["paid"].nunique() > 1:
            return [members["paid"].idxmax(), members["paid"].idxmin()]
    return []


def _pick(turns: pd.DataFrame) -> list[tuple[str, int]]:
    """(task, rollout) of the one or two trajectories to show, the highest return first."""
    rollouts = turns.groupby(TRAJECTORY).agg(paid=("env_reward", "sum"), length=("turn", "size"))
    short = rollouts[rollouts["length"] <= LONGEST]
    rollouts = short if len(short) else rollouts
    return best_and_worst(rollouts, "task_id") or [rollouts.index[0]]


def _trajectory(turns: pd.DataFrame, task_id: str, rollout: int) -> pd.DataFrame:
    mine = turns[(turns["task_id"] == task_id) & (turns["rollout"] == rollout)]
    return mine.sort_values("turn")


def _short(action: str, length: int = 34) -> str:
    # A policy may sample control characters, which are invalid in XML.
    action = "".join(sign if sign.isprintable() else "\ufffd" for sign in " ".join(action.split()))
    action = action or "(empty)"
    return action if len(action) <= length else action[: length - 1] + "…"
