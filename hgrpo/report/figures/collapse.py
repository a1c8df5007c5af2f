"""Draws the figure of the dependence of replies on their prompts over training."""

import pandas as pd

from hgrpo.report import style
from hgrpo.report.arms import Arms
from hgrpo.report.style import INK, Drawing
from hgrpo.trajectories.log_row import ANY

# Column of a collapse table -> the title of its panel.
COLLAPSE = {
    "mutual_information": "I(X;Z), nats",
    "conditional_entropy": "H(Z|X), nats",
}
PANELS = COLLAPSE | {"retrieval_at_1": "a reply's own prompt is the likeliest, share"}
CHANCE = "chance_at_1"


def collapse(table: pd.DataFrame | None, arms: Arms) -> Drawing | None:
    """Plot mutual information, conditional entropy and retrieval, as means over seeds.

    None if `table`, from `hgrpo.report.logs.read_collapse`, is None.
    """
    if table is None:
        return None
    rows = table[table["turn"] == ANY].reindex(columns=["method", "round", "step", *PANELS, CHANCE])
    # Metrics are measured before the update of a step. At that time, `step` of `steps` updates are
    # done.
    steps = table["step"].max() + 1
    rows["trained"] = rows["round"] - 1 + rows["step"] / steps
    means = rows.groupby(["method", "trained"], as_index=False)[[*PANELS, CHANCE]].mean()
    figure, axes = style.canvas(len(PANELS), height=6.4, sharex=True)
    drawn = [name for name in arms.trained if name in set(means["method"])]
    for ax, (column, title) in zip(axes[:, 0], PANELS.items(), strict=True):
        for name in drawn:
            curve = means[means["method"] == name]
            look = arms[name].look | {"markersize": 4, "label": arms.label(name)}
            ax.plot(curve["trained"], curve[column], **look)
        ax.set_title(title, fontsize=9.5)
    chance = means.groupby("trained")[CHANCE].mean()
    axes[-1, 0].plot(chance.index, chance, color=INK, linewidth=1, linestyle=":")
    axes[-1, 0].set_ylim(0, 1.02)
    style.whole_numbers(axes[-1, 0], "rounds of training", fontsize=9)
    if drawn:
        style.legend_below(figure, axes[0, 0].get_legend_handles_labels()[0])
    ends = (
        means.sort_values("trained").groupby("method")["mutual_information"].agg(["first", "last"])
    )
    numbers = ", ".join(
        f"{arms.label(name)} from {ends.loc[name, 'first']:.2f} to {ends.loc[name, 'last']:.2f}"
        for name in drawn
    )
    return Drawing(
        "collapse",
        "training",
        "Do replies still depend on their prompts?",
        "X is the prompt of a turn sampled from a trajectory. Z is the turn's thought, or its "
        "reply if there is no thought. Low I(X;Z) with high H(Z|X) indicates template collapse: "
        "diverse replies that do not depend on the prompt. Dotted: retrieval at chance level. "
        "Means over seeds.",
        f"Mutual information of prompt and reply, before training and at its end: {numbers}.",
        figure,
        means,
    )
