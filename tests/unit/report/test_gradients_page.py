"""The page about gradients, from tables of two arms."""

import pandas as pd
import pytest

from hgrpo.errors import UserError
from hgrpo.evaluation.gradients.slopes import dominance, slopes, weighted_norms
from hgrpo.report.figures.gradients import gradient_norms
from hgrpo.report.gradients_page import headline, read_buckets, render
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
            "deviation": deviation,
            "coefficient": 1.0,
            "corrected": norm,
        }
        for deviation, bucket in enumerate(("bucket_1", "bucket_2", "all"))
        for component, norm in (("task", task[deviation]), ("kl", 0.5), ("entropy", 0.5))
    ]
    pd.DataFrame(rows).to_csv(folder / "buckets.csv", index=False)
    return folder / "buckets.csv"


@pytest.fixture
def norms(tmp_path):
    return weighted_norms(
        read_buckets(
            [
                write_buckets(tmp_path, method, seed, 3, task)
                for method, task in (("PPO", (0.1, 4.0, 9.0)), ("GRPO", (3.0, 5.0, 9.0)))
                for seed in (11, 23)
            ]
        )
    )


def test_the_page_says_who_dominates_and_escapes_labels(norms, tmp_path):
    who = dominance(norms)
    assert headline(who) == (
        "Of 2 measurements where returns differ least: regularisers dominate in 1 and the task "
        "dominates in 1"
    )
    figures = []
    for method, label in LABELS.items():
        drawing = gradient_norms(norms, method, label, 10)
        save(drawing, tmp_path)
        told = {name: getattr(drawing, name) for name in ("name", "title", "caption", "alt")}
        figures.append(told | {"svg": (tmp_path / f"{drawing.name}.svg").read_text()})
        assert drawing.data["norm"].max() == task_at_the_end(method)
    page = render("toy", LABELS, 10, slopes(norms), who, figures)
    assert "PPO &lt;i&gt;" in page and "<i>" not in page
    assert "regularisers dominate" in page and ">30<" in page


def task_at_the_end(method):
    return {"PPO": 4.0, "GRPO": 5.0}[method]


def test_a_pass_without_groups_is_drawn_as_a_gap(norms):
    texts = [
        t.get_text() for ax in gradient_norms(norms, "PPO", "PPO", 10).figure.axes for t in ax.texts
    ]
    assert texts == ["not measured"]


def test_a_damaged_table_is_named(tmp_path):
    path = tmp_path / "gradients/PPO/seed_11/round_0/buckets.csv"
    path.parent.mkdir(parents=True)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match=r"buckets.csv: not a table of gradients"):
        read_buckets([path])
