"""Draws figures of training: reward, KL, gradients and the health of the updates."""

import pandas as pd
from matplotlib.axes import Axes

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import TEST
from hgrpo.report import style
from hgrpo.report.arms import Arms
from hgrpo.report.endpoint_words import SUCCESS
from hgrpo.report.figures.learning import draw_arm, single_runs
from hgrpo.report.names import run_figure
from hgrpo.report.style import GRID, INK, MANY, MUTED, Drawing
from hgrpo.report.words import if_several, percent

WINDOW = 5
HEALTH = {
    "entropy": ("entropy, nats per token", False),
    "observed_kl": ("KL to SFT, per token", False),
    "grad_norm": ("gradient norm", False),
    "clip_fraction": ("clipped tokens, share", False),
    "ess": ("effective sample size, share", False),
    "mismatch_max": ("sampler against trainer,\nlargest |Δ log-prob|", True),
}


def reward_curve(log: pd.DataFrame, arms: Arms, method: str, seed: int) -> Drawing:
    """Plot one run: mean and deviation of the reward on top, KL and gradient norm below."""
    arm = arms[method]
    figure, axes = style.canvas(2, height=4.6, sharex=True)
    top, bottom = axes[:, 0]
    mean, spread = log["mean_reward"], log["std_reward"]
    top.fill_between(
        log["batch"], mean - spread, mean + spread, color=arm.colour, alpha=0.15, linewidth=0
    )
    top.plot(log["batch"], mean, color=arm.colour, alpha=0.45, linewidth=1)
    top.plot(log["batch"], moving_average(mean), color=arm.colour, linewidth=2)
    top.set_ylabel("mean reward")
    for first in log.groupby("round")["batch"].min().iloc[1:]:
        for ax in (top, bottom):
            ax.axvline(first - 0.5, color=GRID, linewidth=1, zorder=0)
    for column, label, colour, line in (
        ("kl_coef", "KL coefficient", INK, "--"),
        ("observed_kl", "observed KL", arm.colour, "-"),
    ):
        positive = log[log[column] > 0]
        if len(positive):
            bottom.plot(positive["batch"], positive[column], line, color=colour, label=label)
            style.log_axis(bottom.yaxis)
    bottom.set_ylabel("KL (log scale)")
    twin = bottom.twinx()
    twin.plot(log["batch"], log["grad_norm"], color=MUTED, linewidth=1, label="gradient norm")
    twin.set_ylabel("gradient norm", color=MUTED)
    twin.spines["right"].set_visible(True)
    style.whole_numbers(bottom, "batch")
    style.legend_below(figure, [*bottom.get_legend_handles_labels()[0], *twin.lines])
    columns = ["batch", "round", "step", "mean_reward", "std_reward"]
    columns += ["kl_coef", "observed_kl", "grad_norm"]
    share = max(1, len(log) // 10)
    return Drawing(
        run_figure(method, seed),
        "runs",
        f"{arm.label}, seed {seed}",
        f"Mean reward of each batch ± one standard deviation over trajectories, and its moving "
        f"average over {WINDOW} batches. Vertical lines separate rounds.",
        f"Mean reward {mean.head(share).mean():.3f} in the first tenth of the batches, "
        f"{mean.tail(share).mean():.3f} in the last.",
        figure,
        log[columns].assign(moving_average=moving_average(mean)),
    )


def protocol_comparison(comparison: Comparison, logs: pd.DataFrame, arms: Arms) -> Drawing | None:
    """Plot all arms in four panels: reward, test success, dead groups, size of turn advantages."""
    if logs.empty:
        return None
    figure, axes = style.canvas(4, height=8.6)
    reward, evaluation, dead, advantage = axes[:, 0]
    means = mean_over_seeds(logs, arms)
    drawn = means.assign(dead_share=means["dead_groups"] / means["n_groups"])
    columns = {reward: "mean_reward", dead: "dead_share", advantage: "mean_abs_turn_adv"}
    for ax, column in columns.items():
        draw_lines(ax, drawn, column, arms)
        style.whole_numbers(ax, "batch")
    reward.set(title="Training reward", ylabel=f"mean of {WINDOW} batches")
    dead.set(title="Dead groups", ylabel="share of groups")
    style.percent_axis(dead.yaxis)
    advantage.set(title="Size of the turn advantages", ylabel="mean |advantage|")
    for ax in (dead, advantage):
        ax.set_ylim(bottom=0)
    rounds = comparison.rounds[comparison.rounds["panel"] == TEST]
    for name in arms.trained:
        draw_arm(evaluation, rounds, single_runs(comparison), arms[name], SUCCESS)
    evaluation.set_title("Evaluation: greedy test success")
    style.whole_numbers(evaluation, "round")
    style.percent_axis(evaluation.yaxis)
    style.legend_below(figure, reward.lines)
    share = means.groupby("method").apply(
        lambda table: table["dead_groups"].sum() / table["n_groups"].sum()
    )
    shares = ", ".join(f"{arms.label(name)} {percent(share[name])}" for name in arms.trained)
    return Drawing(
        "protocol_comparison",
        "training",
        "Training and evaluation, all arms",
        "A group is dead if all its advantages are zero, so that it has no gradient. The turn "
        "advantage is the part from the credit assigner."
        + (
            f" The thick line is {arms.label(arms.reference)}."
            if len(arms.trained) > MANY and arms.has_reference
            else ""
        ),
        f"Share of dead groups over the whole training: {shares}.",
        figure,
        means,
    )


def draw_lines(
    ax: Axes, means: pd.DataFrame, column: str, arms: Arms, window: int = WINDOW
) -> None:
    """Plot a moving average over batches for every arm, with labels for a legend.

    With more than `MANY` trained arms, the reference has a thicker line.
    """
    many = len(arms.trained) > MANY
    for name in arms.trained:
        arm, mine = arms[name], means[means["method"] == name]
        ax.plot(
            mine["batch"],
            moving_average(mine[column], window),
            arm.line,
            color=arm.colour,
            linewidth=2.2 if many and name == arms.reference else 1.3,
            label=arm.label,
        )


def health(logs: pd.DataFrame, arms: Arms) -> Drawing | None:
    """Plot six diagnostics of the updates; None if there are no logs."""
    if logs.empty:
        return None
    figure, axes = style.canvas(3, 2, height=6.2, sharex=True)
    means = mean_over_seeds(logs, arms)
    for ax, (column, (title, log_scale)) in zip(axes.flat, HEALTH.items(), strict=True):
        ax.set_title(title, fontsize=9, fontweight="normal")
        draw_lines(ax, means, column, arms, window=1)
        if log_scale and (means[column] > 0).any():
            style.log_axis(ax.yaxis)
        ax.tick_params(labelsize=8)
    for ax in axes[-1]:
        style.whole_numbers(ax, "batch")
    style.legend_below(figure, axes[0, 0].lines)
    if means["ess"].isna().all():
        text = "All groups of all batches were dead, so there was no update."
    else:
        worst, lowest = means["mismatch_max"].max(), percent(means["ess"].min())
        text = f"Largest mismatch {worst:.2g}; lowest effective sample size {lowest}."
    return Drawing(
        "health",
        "training",
        "Health of the updates",
        f"{if_several(logs['seed'], 'Means over seeds. ')}The mismatch is the difference between "
        "the log-probabilities of sampler and trainer before the first update of a batch, and "
        "should be tiny. A low effective sample size means that the rollouts are stale.",
        text,
        figure,
        means[["method", "batch", *HEALTH]],
    )


def moving_average(values: pd.Series, window: int = WINDOW) -> pd.Series:
    """Mean of the last `window` values, ignoring missing ones."""
    return values.rolling(window, min_periods=1).mean()


def mean_over_seeds(logs: pd.DataFrame, arms: Arms) -> pd.DataFrame:
    """Average every numeric column over the seeds of each arm, batch by batch."""
    numeric = logs.drop(columns=["seed", "step", "round"]).groupby(["method", "batch"])
    means = numeric.mean().reset_index()
    known = [name for name in arms.trained if name in set(means["method"])]
    means["method"] = pd.Categorical(means["method"], known, ordered=True)
    return means.sort_values(["method", "batch"], ignore_index=True).astype({"method": str})
