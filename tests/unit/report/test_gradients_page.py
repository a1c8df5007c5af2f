"""The page about gradients, from tables of two arms."""

import json

import pandas as pd
import pytest

from hgrpo.evaluation.gradients.slopes import bucket_means, dominance, slopes, weighted_norms
from hgrpo.report.figures.gradient_buckets import Measured, policy_figures
from hgrpo.report.figures.gradients import gradient_norms
from hgrpo.report.gradients_page import (
    GradientArm,
    headline,
    read_success,
    read_tables,
    render,
)
from hgrpo.report.style import save

LABELS = {"PPO": "PPO <i>", "GRPO": "GRPO"}


def write_buckets(root, method, seed, number, task):
    folder = root / f"gradients/{method}/seed_{seed}/round_{number}"
    folder.mkdir(parents=True)
    rows = [
        {
            "pass": "prefilter",
            "bucket": bucket,
            "component": component,
            "groups": 5,
            "trajectories": 10,
            "tokens": 200,
            "deviation": deviation,
            "coefficient": 2.0 if component == "kl" else 1.0,
            "loss": 0.1,
            "corrected": norm / 2 if component == "kl" else norm,
            "corrected_lower": 0.0,
            "corrected_upper": 10.0,
            "norm": 1.5 * norm,
            "signal": (norm / 2 if component == "kl" else norm) ** 2,
            "signal_to_noise": 2.0,
            "cosine_to_all": 0.9,
            "cosine_to_task": 0.1,
            "cosine_to_regularisers": 0.1,
        }
        for deviation, bucket in enumerate(("bucket_1", "bucket_2", "all"))
        for component, norm in (
            ("task", task[deviation]),
            ("kl", 0.5),
            ("entropy", 0.5),
            ("regularisers", 1.0),
        )
    ]
    pd.DataFrame(rows).to_csv(folder / "buckets.csv", index=False)
    return folder / "buckets.csv"


@pytest.fixture
def table(tmp_path):
    return read_tables(
        [
            write_buckets(tmp_path, method, seed, 3, task)
            for method, task in (("PPO", (0.1, 4.0, 9.0)), ("GRPO", (3.0, 5.0, 9.0)))
            for seed in (11, 23)
        ],
        ("pass", "bucket", "component"),
    )


@pytest.fixture
def norms(table):
    return weighted_norms(table)


@pytest.fixture
def figures(table):
    """PPO's own figures by stem."""
    groups = pd.DataFrame(
        {
            "task": ["a", "b", "c"],
            "seed": 11,
            "deviation": [0.0, 1.0, 1.2],
            "prefilter_bucket": ["bucket_1", "bucket_2", "bucket_2"],
            "postfilter_bucket": "",
        }
    )
    drawn = policy_figures(Measured("PPO", "PPO", 30, table[table["method"] == "PPO"], groups))
    return {drawing.name.removeprefix("PPO_step_30/"): drawing for drawing in drawn}


def panels(drawing):
    """Title -> axes, of the row of all groups."""
    axes = drawing.figure.axes
    return {ax.get_title(loc="left"): ax for ax in axes[: len(axes) // 2]}


def bars(ax):
    return [bar.get_height() for bar in ax.patches]


def test_the_page_says_who_dominates_and_escapes_labels(table, norms, figures, tmp_path):
    tables = {
        "buckets": bucket_means(table),
        "slopes": slopes(norms),
        "dominance": dominance(norms),
        "success": pd.DataFrame([{"method": "PPO", "round": 3, "seeds": 2, "success": 0.25}]),
    }
    assert headline(tables["dominance"]) == (
        "In the bucket with the smallest deviation of returns: in 1 of 2 policies the regularisers "
        "dominate and in 1 of 2 policies the task dominates"
    )
    drawings = [gradient_norms(norms, method, label, 10) for method, label in LABELS.items()]
    assert [d.data["square"].max() for d in drawings] == [16.0, 25.0]
    figures_given = []
    for drawing in (*drawings, *figures.values()):
        save(drawing, tmp_path)
        names = ("name", "section", "title", "caption", "alt")
        texts = {name: getattr(drawing, name) for name in names}
        figures_given.append(
            texts | {"svg": (tmp_path / f"{drawing.name}.svg").read_text(encoding="utf-8")}
        )
    arms = {method: GradientArm(label, 10) for method, label in LABELS.items()}
    page = render("toy", arms, tables, figures_given)
    assert "PPO &lt;i&gt;" in page and "<i>" not in page
    assert "regularisers dominate" in page and ">30<" in page and ">0.25<" in page
    assert page.count("<details>") == 2 and page.count("<svg") == 2 + 5
    assert "PPO &lt;i&gt; after 30 steps" in page


def test_a_pass_without_groups_is_drawn_as_a_gap(norms):
    texts = [
        t.get_text() for ax in gradient_norms(norms, "PPO", "PPO", 10).figure.axes for t in ax.texts
    ]
    assert texts == ["not measured"] * 2  # the task's norms, and the others'


def test_each_figure_of_a_policy_shows_its_numbers(figures):
    assert list(figures) == ["summary", "plots", "loss_plots", "reward_std", "normed_grads"]
    assert bars(panels(figures["plots"])["task"]) == [0.1, 4.0]
    assert bars(panels(figures["plots"])["KL"]) == [0.5, 0.5]
    assert bars(panels(figures["loss_plots"])["KL"]) == pytest.approx([0.2, 0.2])
    # Task, entropy, and the KL's twice.
    assert bars(panels(figures["loss_plots"])["total"]) == pytest.approx([0.4, 0.4])
    assert bars(panels(figures["reward_std"])["deviation of returns"]) == [0, 1]
    shares = panels(figures["normed_grads"])
    assert bars(shares["task a trajectory"]) == pytest.approx([0.01, 0.4])
    assert bars(shares["task a token"]) == pytest.approx([0.0005, 0.02])
    together = panels(figures["summary"])["KL + entropy"].lines
    assert [line.get_ydata().tolist() for line in together] == [[1.0, 1.0]] * 2


def test_success_is_the_mean_over_seeds(tmp_path):
    paths = []
    for seed, success in ((11, 0.2), (23, 0.4)):
        path = tmp_path / f"eval/PPO/seed_{seed}/round_3/summary.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"success": {"validation T=0": success}}), encoding="utf-8")
        paths.append(path)
    rows = read_success(paths).to_dict("records")
    assert rows == [{"method": "PPO", "round": 3, "seeds": 2, "success": pytest.approx(0.3)}]
    assert read_success([]).empty
