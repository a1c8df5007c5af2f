"""Credit pictures: the same trajectories, turn by turn, as each arm credited them."""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap

from hgrpo.report.arms import Arms
from hgrpo.report.style import INK, MUTED, PAPER, Drawing, canvas

GOAL = re.compile(r"Your task is to: (.+)")
POSITIVE, NEGATIVE = "#3a86c8", "#e07b00"
LONGEST = 16  # turns that fit a picture
KEYS = ["task_id", "rollout"]


def credit_table(turns: Mapping[str, pd.DataFrame], arms: Arms) -> pd.DataFrame:
    """Two or so trajectories of one group with the credit of every arm, one row per turn and arm.

    Chosen, not cherry-picked: the first group, in task order, with a won and a lost rollout (or,
    without one, the first group); in it the first won and the first lost rollout of at most
    `LONGEST` turns. An arm that did not play these very actions is left out.

    Args:
        turns: arm -> turns of the first batch of the first round (`logs.read_first_turns`).

    Returns:
        Columns task_id, goal, rollout, env_return, turn, observation, action, admissible,
        method, credit, advantage. Empty without turns.
    """
    named = [name for name in arms.trained if name in turns and len(turns[name])]
    if not named:
        return pd.DataFrame()
    lead = turns[arms.reference if arms.reference in named else named[0]]
    picked = _pick(lead)
    parts = []
    for task_id, rollout in picked:
        script = _trajectory(lead, task_id, rollout)
        goal = GOAL.search(script["observation"].iloc[0])
        for name in named:
            mine = _trajectory(turns[name], task_id, rollout)
            if mine["action"].tolist() != script["action"].tolist():
                continue
            parts.append(
                mine.assign(
                    method=name,
                    goal=goal.group(1).strip() if goal else "",
                    env_return=mine["env_reward"].sum(),
                )
            )
    table = pd.concat(parts, ignore_index=True)
    columns = [*KEYS, "goal", "env_return", "turn", "observation", "action", "admissible"]
    return table[[*columns, "method", "credit", "advantage"]]


def credit_strips(table: pd.DataFrame, arms: Arms) -> Drawing | None:
    """One strip per arm and trajectory, its turns coloured by credit."""
    if table.empty:
        return None
    pictures = [picture for _, picture in table.groupby(KEYS, sort=False)]
    arms_shown = [name for name in arms.trained if name in set(table["method"])]
    lengths = [picture["turn"].nunique() for picture in pictures]
    figure, axes = canvas(
        len(pictures),
        height=sum(0.24 * length + 0.9 for length in lengths) + 0.3,
        height_ratios=lengths,
    )
    colours = LinearSegmentedColormap.from_list("credit", [NEGATIVE, PAPER, POSITIVE])
    for ax, picture in zip(axes.flat, pictures, strict=True):
        credit = picture.pivot(index="turn", columns="method", values="credit")[arms_shown]
        ax.grid(False)
        scaled = credit.to_numpy() / scale_of(credit.to_numpy())
        ax.pcolormesh(
            scaled, cmap=colours, vmin=-1, vmax=1, edgecolors=PAPER, linewidth=1, rasterized=False
        )
        for (row, column), value in np.ndenumerate(credit.to_numpy()):
            ax.text(
                column + 0.5,
                row + 0.5,
                f"{value:+.2f}" if value else "0",
                ha="center",
                va="center",
                fontsize=8,
                color=INK if value else MUTED,
            )
        actions = picture.drop_duplicates("turn")["action"]
        ax.set_yticks(
            np.arange(len(credit)) + 0.5,
            [f"{_short(action)}  {turn + 1}" for turn, action in enumerate(actions)],
            fontsize=8,
        )
        ax.set_ylim(len(credit), 0)
        ax.set_xticks(
            np.arange(len(arms_shown)) + 0.5,
            [arms.label(name).replace(" ", "\n") for name in arms_shown],
            fontsize=8,
        )
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        paid = picture["env_return"].iloc[0]
        ax.set_title(f"{picture['goal'].iloc[0]} ({paid:g} paid)", fontsize=9)
    return Drawing(
        "credit",
        "credit",
        "Who earned the reward?",
        "The same trajectories, credited by every arm; colours are scaled per arm.",
        f"Credit of {len(pictures)} trajectories turn by turn for {len(arms_shown)} arms; the "
        "numbers are in credit.csv and in the table of the report.",
        figure,
        table,
    )


def scale_of(credit: np.ndarray) -> np.ndarray:
    """Largest absolute credit of each column [turns, arms], 1 where all are zero."""
    largest = np.abs(credit).max(axis=0)
    return np.where(largest > 0, largest, 1.0)


def _pick(turns: pd.DataFrame) -> list[tuple[str, int]]:
    """(task, rollout) of the trajectories to show, a won one before a lost one."""
    rollouts = turns.groupby(KEYS, sort=True).agg(
        env_return=("env_reward", "sum"), length=("turn", "size")
    )
    short = rollouts[rollouts["length"] <= LONGEST]
    rollouts = (short if len(short) else rollouts).reset_index()
    for _, group in rollouts.groupby("task_id", sort=True):
        if group["env_return"].nunique() > 1:
            best = group.loc[group["env_return"].idxmax()]
            worst = group.loc[group["env_return"].idxmin()]
            return [(row["task_id"], row["rollout"]) for row in (best, worst)]
    return [(rollouts["task_id"].iloc[0], rollouts["rollout"].iloc[0])]


def _trajectory(turns: pd.DataFrame, task_id: str, rollout: int) -> pd.DataFrame:
    mine = turns[(turns["task_id"] == task_id) & (turns["rollout"] == rollout)]
    return mine.sort_values("turn")


def _short(action: str, length: int = 34) -> str:
    action = " ".join(action.split()) or "(empty)"
    return action if len(action) <= length else action[: length - 1] + "…"
