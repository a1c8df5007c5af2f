"""Credit against truth: its figures, and its section on the page."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from report_fixtures import build_report, write_study
from stage_settings import run_stage

from hgrpo.errors import UserError
from hgrpo.evaluation.truth.measured import SHUFFLED, TRUTH, MeasuredTruth
from hgrpo.evaluation.truth.scoring import (
    error_rows,
    gradient_rows,
    score,
    shuffled_row,
    true_gradient_rows,
)
from hgrpo.report.draw import save_all
from hgrpo.report.figures.credit_truth import closest, mistakes, updates
from hgrpo.report.truth_section import truth_tables

PRICE = {"seconds": 0.01, "dollars": 0.0, "extra_trajectories": 0.0}
METHODS = {"near": 0.3, "far": 3.0, "equal": None}


def simulated(groups=30):
    """A truth of `groups` groups of four trajectories of three turns."""
    rng = np.random.default_rng(0)
    turns = 12 * groups
    true = rng.normal(size=turns)
    return MeasuredTruth(
        advantage=true,
        error=np.full(turns, 0.1),
        first=true + 0.1 * rng.normal(size=turns),
        second=true + 0.1 * rng.normal(size=turns),
        sketches=rng.normal(size=(turns, 40)),
        owner=np.repeat(np.arange(groups), 12),
        turn=np.tile(np.arange(3), 4 * groups),
        kind=np.array(["go", "take"] * (turns // 2), dtype=object),
        lengths=np.full(4 * groups, 3),
    )


@pytest.fixture(scope="module")
def tables():
    truth, rng = simulated(), np.random.default_rng(1)
    methods, gradients, errors = [], [], []
    for number in (0, 1):
        for name, noise in METHODS.items():
            credit = np.ones(len(truth.advantage))
            if noise is not None:
                credit = truth.advantage + noise * rng.normal(size=credit.shape)
            head = {"round": number, "method": name, "label": f"{name}!"}
            extra = PRICE | {"extra_trajectories": 96.0 * (name == "near")}
            methods.append(head | score(credit, credit, truth) | extra)
            gradients += [head | row for row in gradient_rows(credit, truth)]
            errors += [head | row for row in error_rows(credit, truth)]
        head = {"round": number, "method": SHUFFLED, "label": "Truth, shuffled"}
        methods.append(head | shuffled_row(truth))
        head = {"round": number, "method": TRUTH, "label": "Truth"}
        gradients += [head | row for row in true_gradient_rows(truth)]
    return tuple(map(pd.DataFrame, (methods, gradients, errors)))


@pytest.fixture(scope="module")
def folder(tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("agreement")
    methods, gradients, errors = tables
    methods.to_csv(folder / "truth.csv", index=False)
    last = gradients[gradients["round"] == 1]
    save_all([closest(methods), updates(last), mistakes(errors[errors["round"] == 1])], folder)
    return folder


def test_scores_follow_the_noise(tables):
    rows = tables[0][tables[0]["round"] == 1].set_index("method")
    # The correlation of the truth with itself and noise of 0.3 or of 3.
    for name, noise in (("near", 0.3), ("far", 3.0)):
        expected = 1 / np.sqrt(1 + noise**2)
        assert rows.loc[name, "credit_pearson"] == pytest.approx(expected, abs=0.15)
    assert rows["beats_shuffled"].to_dict() == {
        "near": "yes",
        "far": rows.loc["far", "beats_shuffled"],
        "equal": "no",
        SHUFFLED: "no",
    }
    assert np.isnan(rows.loc["equal", "advantage_pearson"])
    assert rows.loc["near", "cosine"] > rows.loc["far", "cosine"]


def test_every_figure_has_its_numbers(folder):
    index = json.loads((folder / "index.json").read_bytes())
    assert [entry["name"] for entry in index] == ["closest", "updates", "mistakes"]
    for entry in index:
        assert "<svg" in (folder / f"{entry['name']}.svg").read_text(encoding="utf-8")
        assert len(pd.read_csv(folder / f"{entry['name']}.csv"))
    caption = index[0]["caption"]
    assert "Closest: near!" in caption and "equal!" not in caption.partition("Closest")[0]
    assert "+96 played" in (folder / "closest.svg").read_text(encoding="utf-8")


def test_the_tables_name_the_closest_first_and_the_shuffled_truth_last(folder):
    tables_read = truth_tables(folder)
    assert [table["policy"] for table in tables_read] == ["after round 1", "SFT policy"]
    rows = tables_read[0]["rows"]
    assert [row.label for row in rows] == ["near!", "far!", "equal!", "Truth, shuffled"]
    value, interval = rows[0].cells[0]
    assert re.fullmatch(r"0\.\d\d|1\.\d\d", value) and re.fullmatch(r"\d.\d\d to \d.\d\d", interval)
    assert rows[2].cells[0] == ("", "") and rows[2].beats == "no"


def test_without_truth_there_is_no_section(tmp_path):
    assert truth_tables(None) == truth_tables(tmp_path) == []
    (tmp_path / "truth.csv").write_text("round,method\n1,flat\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"truth\.csv: expected a table of credit"):
        truth_tables(tmp_path)


def test_the_page_shows_the_comparison_if_there_is_one(folder, tmp_path):
    study = write_study(tmp_path, seeds=(11,), rounds=2, steps=3, n_test=20, n_validation=8)
    plain = build_report(study, ("merge", "report")).read_text(encoding="utf-8")
    assert 'id="truth"' not in plain
    pair = {"label_a": "near!", "label_b": "far!", "unexplained": 0.0}
    pd.DataFrame([pair]).to_csv(folder / "twins.csv", index=False)
    arguments = ["--episodes", tmp_path / "report/episodes.parquet"]
    arguments += ["--train-logs", *study.files("rl/*/*/*/train_log.json")]
    arguments += ["--study", tmp_path / "config.yaml", "--figures", tmp_path / "report/figures"]
    arguments += ["--snapshots", *study.files("rl/*/*/*/config.yaml"), "--agreement", folder]
    arguments += ["--comparison", tmp_path / "x.json", "--tables", tmp_path / "tables"]
    arguments += ["--findings", tmp_path / "findings.txt"]
    arguments += ["--out", tmp_path / "page.html"]
    run_stage("report", "--config", json.dumps(study.config), *arguments)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="truth"' in page and 'href="#truth"' in page
    assert page.index("near! and far! are one method under two names") < page.index("<table")
    assert {"figure-closest", "figure-updates", "figure-mistakes"} <= set(
        re.findall(r'id="(figure-\w+)"', page)
    )
    section = page.partition('id="truth"')[2].partition("</section>")[0]
    assert section.index("near!") < section.index("Truth, shuffled")
