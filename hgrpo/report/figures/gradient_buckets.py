"""Plots one policy's return deviations, gradient norms and losses by bucket of groups.

The figures are named as in RAGEN's script (https://github.com/mll-lab-nu/RAGEN). Unmeasured values
are drawn as gaps; RAGEN's script draws them as zeros.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from hgrpo.evaluation.gradients.buckets import ALL
from hgrpo.evaluation.gradients.slopes import signed_root
from hgrpo.evaluation.gradients.table import PASSES, REGULARISERS, TASK
from hgrpo.report import style
from hgrpo.report.figures.gradients import DRAWN, TITLES
from hgrpo.report.style import INK, MUTED, Drawing

_GREY = "#8a939d"
_ROOTS = (
    "Bars are roots of mean squares over seeds, dots are seeds; they are negative where the "
    "noise-corrected square is below 0."
)


@dataclass(frozen=True)
class Measured:
    """Tables of one policy, for all seeds.

    Attributes:
        method, label: name and label of the arm.
        steps: number of optimiser batches on which the policy was trained.
        buckets: rows of buckets.csv, with the column seed.
        groups: rows of groups.csv, with the column seed.
    """

    method: str
    label: str
    steps: int
    buckets: pd.DataFrame
    groups: pd.DataFrame


def policy_name(method: str, steps: int) -> str:
    """Name of the folder with a policy's figures."""
    return f"{method}_step_{steps}"


# A panel consists of a title and a function that draws it from axes, rows and one of `PASSES`.
_Panel = tuple[str, Callable[[Axes, pd.DataFrame, str], None]]


def policy_figures(of: Measured) -> list[Drawing]:
    """The figures `summary`, `plots`, `loss_plots`, `reward_std` and `normed_grads` of a policy.

    Each figure has two rows of axes: for all groups, and for the groups that pass the filter.
    """
    rows = of.buckets[of.buckets["bucket"] != ALL].copy()
    rows["weighted"] = rows["coefficient"] * rows["corrected"]
    rows["weighted_loss"] = rows["coefficient"] * rows["loss"]
    rows["square"] = rows["coefficient"] ** 2 * rows["signal"]
    for unit in ("trajectories", "tokens"):
        rows[f"square_by_{unit}"] = rows["square"] / rows[unit] ** 2
    rows = pd.concat([rows, _total_loss(rows)], ignore_index=True)
    return [_figure(of, rows, *parts) for parts in _parts(of.groups)]


def _parts(groups: pd.DataFrame) -> list[tuple[str, str, str, list[_Panel]]]:
    by_component = [(name, text) for name, (text, _) in DRAWN.items()]
    losses = [(text, partial(_bars, name, "weighted_loss")) for name, text in by_component]
    return [
        (
            "summary",
            "deviations and norms",
            "Left: box plot of the groups' standard deviation of returns in each bucket. Middle "
            "and right: norms of the task gradient, and of the sum of KL and entropy gradients, "
            "at the bucket's mean deviation. Norms are multiplied by the coefficients and "
            "noise-corrected; a norm below the noise is drawn at 0. Each line is a seed; bars are "
            "95 % intervals from a bootstrap over groups.",
            [
                ("deviation", partial(_boxes, groups)),
                ("task", partial(_lines, TASK)),
                ("KL + entropy", partial(_lines, REGULARISERS)),
            ],
        ),
        (
            "plots",
            "norms by bucket",
            f"Noise-corrected norms, multiplied by the coefficients. {_ROOTS}",
            [(text, partial(_roots, name, "square")) for name, text in by_component],
        ),
        (
            "loss_plots",
            "losses by bucket",
            "The parts of the loss, multiplied by their coefficients, and their sum. Bars are "
            "means over seeds, dots are seeds.",
            [*losses, ("total", partial(_bars, "total", "weighted_loss"))],
        ),
        (
            "reward_std",
            "deviations by bucket",
            "Mean standard deviation of returns over a bucket's groups. Bars are means over seeds, "
            "dots are seeds.",
            [("deviation of returns", partial(_bars, TASK, "deviation"))],
        ),
        (
            "normed_grads",
            "norms per trajectory and token",
            "Noise-corrected norms, multiplied by the coefficients, and divided by the bucket's "
            "number of trajectories (upper panel of each pair) or sampled tokens (lower panel). "
            f"{_ROOTS} RAGEN plots these norms. The gradient is already a mean, so they mostly "
            "reflect the size of the buckets.",
            [
                (f"{text} a {one}", partial(_roots, name, f"square_by_{unit}"))
                for unit, one in (("trajectories", "trajectory"), ("tokens", "token"))
                for name, text in by_component
            ],
        ),
    ]


def _total_loss(rows: pd.DataFrame) -> pd.DataFrame:
    parts = rows[rows["component"].isin(list(DRAWN))]
    keys = ["pass", "bucket", "seed"]
    total = parts.groupby(keys, as_index=False, sort=False)["weighted_loss"].sum()
    return total.assign(component="total")


def _figure(
    of: Measured,
    rows: pd.DataFrame,
    stem: str,
    about: str,
    caption: str,
    panels: Sequence[_Panel],
) -> Drawing:
    columns = len(panels) if len(panels) <= 4 else 3
    lines = -(-len(panels) // columns)
    height = 0.6 + 1.55 * lines * len(PASSES)
    figure, axes = style.canvas(lines * len(PASSES), columns, height=height)
    for place, name in enumerate(PASSES):
        part = rows[rows["pass"] == name]
        for index, (title, draw) in enumerate(panels):
            ax = axes[place * lines + index // columns, index % columns]
            ax.set_title(title, fontsize=8.5)
            ax.tick_params(labelsize=7.5)
            if part.empty:
                ax.text(0.5, 0.5, "not measured", color=MUTED, ha="center", transform=ax.transAxes)
            else:
                draw(ax, part, name)
        axes[place * lines, 0].set_ylabel(TITLES[name], fontsize=8.5)
    return Drawing(
        f"{policy_name(of.method, of.steps)}/{stem}",
        policy_name(of.method, of.steps),
        f"{of.label} after {of.steps} steps: {about}",
        f"{caption} Gaps are values that were not measured.",
        f"{of.label} after {of.steps} steps: {about}, for {len(set(rows['bucket']))} buckets",
        figure,
        rows,
    )


def _numbers(rows: pd.DataFrame) -> list[str]:
    return sorted(rows["bucket"].unique(), key=_number)


def _number(bucket: str) -> int:
    return int(bucket.removeprefix("bucket_"))


def _boxes(groups: pd.DataFrame, ax: Axes, rows: pd.DataFrame, of_pass: str) -> None:
    names = _numbers(rows)
    column = groups[f"{of_pass}_bucket"]
    spreads = [groups.loc[column == name, "deviation"].to_numpy() for name in names]
    look = {f"{part}props": {"color": INK} for part in ("box", "whisker", "cap", "median")}
    ax.boxplot(spreads, positions=[_number(name) for name in names], widths=0.6, **look)
    ax.set_xlabel("bucket", fontsize=7.5)


def _lines(component: str, ax: Axes, rows: pd.DataFrame, of_pass: str) -> None:
    colour = DRAWN[component][1] if component in DRAWN else _GREY
    for _, seed in rows[rows["component"] == component].groupby("seed"):
        seed = seed.sort_values("deviation", kind="stable")
        lower, upper = (
            seed["coefficient"] * seed[f"corrected_{end}"] for end in ("lower", "upper")
        )
        # If the estimate is outside its interval, draw the error bar on only one side.
        away = np.maximum([seed["weighted"] - lower, upper - seed["weighted"]], 0)
        look = {"color": colour, "marker": "o", "markersize": 3, "elinewidth": 0.8, "alpha": 0.7}
        ax.errorbar(seed["deviation"], seed["weighted"], yerr=away, **look)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("deviation", fontsize=7.5)


def _bars(component: str, column: str, ax: Axes, rows: pd.DataFrame, of_pass: str) -> None:
    part = rows[rows["component"] == component]
    places = part["bucket"].map(_number)
    _draw_bars(ax, component, places, part[column], part.groupby(places)[column].mean())


def _roots(component: str, column: str, ax: Axes, rows: pd.DataFrame, of_pass: str) -> None:
    """Draw the signed root of each seed's squared norm, and of the mean squared norm over seeds."""
    part = rows[rows["component"] == component]
    places = part["bucket"].map(_number)
    means = part.groupby(places)[column].mean()
    _draw_bars(ax, component, places, signed_root(part[column]), signed_root(means))


def _draw_bars(
    ax: Axes, component: str, places: pd.Series, each: pd.Series, means: pd.Series
) -> None:
    colour = DRAWN[component][1] if component in DRAWN else _GREY
    ax.bar(means.index, means, color=colour, width=0.7, alpha=0.6)
    if places.duplicated().any():
        ax.plot(places, each, "o", color=INK, markersize=2.5)
    ax.axhline(0, color=INK, linewidth=0.7)
    ax.set_xticks(np.arange(1, places.max() + 1))
    ax.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
    ax.yaxis.get_offset_text().set_fontsize(7)
