"""Draws figures of an alpha sweep: the effect of blending turn and trajectory advantages."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import TEST
from hgrpo.report import style
from hgrpo.report.arms import Arms
from hgrpo.report.endpoint_words import MEASURES, endpoint_phrase, untrained_level
from hgrpo.report.figures.training import WINDOW, draw_lines, mean_over_seeds, moving_average
from hgrpo.report.style import INK, MUTED, Drawing
from hgrpo.report.words import if_several, opponent, percent

DIAGNOSTICS = {
    "dead_share": "dead groups, share",
    "mean_abs_token_adv": "mean |advantage| per token",
    "observed_kl": "KL to SFT, per token",
    "mean_reward": "rollout reward",
}


def alpha(
    comparison: Comparison, logs: pd.DataFrame, arms: Arms, sweep: Mapping[str, float]
) -> Drawing | None:
    """Plot learning curves, and endpoint, dead groups and advantage size against alpha.

    None if `logs` or `sweep` (from `designs.alpha_sweep`) is empty.
    """
    if not sweep or logs.empty:
        return None
    runs = {name: _by_run(comparison, logs, name) for name in sweep}
    table = alpha_table(comparison, runs, sweep)
    figure, axes = style.canvas(2, 2, height=5.0)
    success, rounds, dead, advantage = axes.flat
    measure = MEASURES[comparison.protocol.settings.score]
    _draw_values(success, table, "endpoint", runs, arms)
    _draw_values(dead, table, "dead_share", runs, arms)
    _draw_values(advantage, table, "mean_abs_token_adv", runs, arms)
    colours = [arms[name].colour for name in table["method"]]
    ends = table["endpoint_lower"], table["endpoint_upper"]
    success.vlines(table["alpha"], *ends, colours, linewidth=1.6)
    test = comparison.rounds[comparison.rounds["panel"] == TEST]
    for name in sweep:
        mine = _of(test, name)
        rounds.plot(mine["round"], mine[measure.column], markersize=4, **arms[name].look)
    style.whole_numbers(rounds, "round", fontsize=9)
    level, dotted = untrained_level(comparison, arms, "endpoint"), ""
    if level is not None:
        success.axhline(level, color=MUTED, linewidth=1.2, linestyle=":")
        dotted = f" Dotted: {opponent(arms, arms.untrained, comparison.best_temperature)}."
    measured = endpoint_phrase(comparison)
    bars = (
        " Ticks are single seeds. Bars are "
        f"{percent(comparison.protocol.level, 0)} intervals of each arm."
    )
    titles = [f"Test: {measured}", f"Test {measure.name} by round"]
    titles += ["Dead groups", "Mean |advantage|"]
    for ax, title in zip(axes.flat, titles, strict=True):
        ax.set_title(title, fontsize=9.5)
    style.percent_axis(dead.yaxis)
    for ax in (success, rounds):
        style.percent_axis(ax.yaxis, measure.unit)
    for ax in (dead, advantage):
        ax.set_ylim(bottom=0)
    _finish(figure, axes, arms, sweep)
    numbers = ", ".join(
        f"{100 * row.endpoint:.1f}{measure.unit} at {row.alpha:g}" for row in table.itertuples()
    )
    return Drawing(
        "alpha",
        "outcome",
        "How much of the advantage should come from the turn?",
        "Alpha 1 uses only the trajectory advantage, and alpha 0 only the turn advantage."
        f"{if_several(comparison.seeds['seed'], bars)} Verdicts are based on paired differences "
        f"between arms. Dead groups have no gradient.{dotted}",
        f"Greedy test play, {measured}, by alpha: {numbers}.",
        figure,
        table,
    )


def alpha_diagnostics(logs: pd.DataFrame, arms: Arms, sweep: Mapping[str, float]) -> Drawing | None:
    """Plot dead groups, advantage size, KL and reward by batch, with one line per alpha.

    None if `logs` or `sweep` is empty.
    """
    if not sweep or logs.empty:
        return None
    means = mean_over_seeds(logs, arms)
    means = means.assign(
        dead_share=means["dead_groups"] / means["n_groups"], alpha=means["method"].map(sweep)
    )
    figure, axes = style.canvas(2, 2, height=4.6, sharex=True)
    for ax, (column, title) in zip(axes.flat, DIAGNOSTICS.items(), strict=True):
        draw_lines(ax, means, column, arms)
        ax.set_title(title, fontsize=8.5, fontweight="normal")
    style.percent_axis(axes[0, 0].yaxis)
    if (means["observed_kl"] > 0).any():
        style.log_axis(axes[1, 0].yaxis)
    for ax in axes[-1]:
        style.whole_numbers(ax, "batch", fontsize=9)
    _finish(figure, axes, arms, sweep)
    last = means.groupby("method")["mean_reward"].apply(
        lambda values: moving_average(values).iloc[-1]
    )
    numbers = ", ".join(f"{last[name]:.2f} at {value:g}" for name, value in sweep.items())
    return Drawing(
        "alpha_diagnostics",
        "training",
        "Training by alpha",
        f"Means over {if_several(logs['seed'], 'seeds and over ')}{WINDOW} batches. "
        "The KL is on a logarithmic scale.",
        f"Rollout reward at the end by alpha: {numbers}.",
        figure,
        means[["method", "alpha", "batch", *DIAGNOSTICS]],
    )


def alpha_table(
    comparison: Comparison, runs: Mapping[str, pd.DataFrame], sweep: Mapping[str, float]
) -> pd.DataFrame:
    """One row per alpha, ascending: the endpoint with its interval, and means over training.

    `dead_share` is the share of dead groups in a run. `mean_abs_token_adv` is a mean over the
    batches of a run. Both are averaged over seeds. `runs` maps arms to tables of `_by_run`.
    """
    greedy = comparison.methods[comparison.methods["temperature"] == 0].set_index("method")
    columns = ["endpoint", "endpoint_lower", "endpoint_upper", "n_seeds", "n_tasks"]
    rows = [
        {
            "method": name,
            "alpha": value,
            **greedy.loc[name, columns].to_dict(),
            **runs[name][["dead_share", "mean_abs_token_adv"]].mean().to_dict(),
        }
        for name, value in sweep.items()
    ]
    return pd.DataFrame(rows)


def _by_run(comparison: Comparison, logs: pd.DataFrame, method: str) -> pd.DataFrame:
    runs = _of(logs, method).groupby("seed")
    table = runs[["mean_abs_token_adv"]].mean()
    table["dead_share"] = runs["dead_groups"].sum() / runs["n_groups"].sum()
    table["endpoint"] = _of(comparison.seeds, method).set_index("seed")["endpoint"]
    return table


def _of(table: pd.DataFrame, method: str) -> pd.DataFrame:
    return table[table["method"] == method]


def _draw_values(
    ax: Axes, table: pd.DataFrame, column: str, runs: Mapping[str, pd.DataFrame], arms: Arms
) -> None:
    ax.plot(table["alpha"], table[column], color=MUTED, linewidth=1, zorder=1)
    for name, value, alpha in zip(table["method"], table[column], table["alpha"], strict=True):
        arm, seeds = arms[name], runs[name][column]
        ax.plot(alpha, value, arm.marker, color=arm.colour, markersize=5.5)
        if len(seeds) > 1:
            ax.plot([alpha] * len(seeds), seeds, "_", color=arm.colour, markersize=9, alpha=0.6)
    ax.set_xlabel("alpha", fontsize=9)
    ax.set_xticks(table["alpha"], [f"{value:g}" for value in table["alpha"]])
    ax.margins(x=0.1)


def _finish(figure: Figure, axes: np.ndarray, arms: Arms, sweep: Mapping[str, float]) -> None:
    for ax in axes.flat:
        ax.tick_params(labelsize=8, labelcolor=INK)
    handles = [
        Line2D([], [], **arms[name].look | {"marker": ""}, label=f"alpha {value:g}")
        for name, value in sweep.items()
    ]
    style.legend_below(figure, handles, columns=5)
