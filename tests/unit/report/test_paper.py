"""Tables and figures for a paper."""

import json
import shutil
import subprocess

import pandas as pd
import pytest
from report_fixtures import build_report, inputs_of, write_merged_study, write_study
from stage_settings import run_stage

from hgrpo.report.paper_figure import SIZES
from hgrpo.report.paper_table import caption, escaped, latex, markdown, paper_table


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return inputs_of(write_merged_study(tmp_path_factory.mktemp("paper"), rounds=2, steps=2))


def test_a_row_holds_the_numbers_of_the_comparison(inputs):
    found = inputs.comparison
    table = paper_table(found, inputs.arms)
    endpoint, reference, untrained = table.columns[1:]
    assert endpoint == "success"
    assert caption(found).startswith(
        "Mean success over rounds 1 to 2 in per cent, with 95 % intervals: "
        f"{found.n_test} test tasks, "
    )
    assert reference == "against flat GRPO"
    assert untrained.startswith("against SFT only, ")
    row = table.set_index("method").loc["Progressive"]
    difference = found.against_reference.set_index("method").loc["Progressive"]
    star = "*" if difference["verdict"] != "inconclusive" else ""
    ends = f"{100 * difference['lower']:+.1f} to {100 * difference['upper']:+.1f}"
    assert row[reference] == f"{100 * difference['difference']:+.1f}{star} ({ends})"
    assert table.set_index("method").loc["flat GRPO", reference] == "\u2013"
    values = table[endpoint].str.split(" ").str[0].astype(float)
    assert values.is_monotonic_decreasing


def test_latex_escapes_what_means_something():
    assert escaped(r"a_b & 5 % of {x} \ ~^#$") == (
        r"a\_b \& 5 \% of \{x\} \textbackslash{} \textasciitilde{}\textasciicircum{}\#\$"
    )
    assert escaped("-1.5 (-2 to +3) GPT-4 \u2013 T\u202f= 1") == (
        r"$-$1.5 ($-$2 to +3) GPT-4 -- T\,= 1"
    )
    table = pd.DataFrame({"arm": ["a_b|c"], "score": ["5 %*"]})
    assert latex(table, "A & B", "tab:x").splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{A \& B}",
        r"\label{tab:x}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"arm & score \\",
        r"\midrule",
        r"a\_b|c & 5 \%* \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    assert markdown(table, "* holds").splitlines() == [
        "| arm | score |",
        "| --- | ---: |",
        r"| a\_b\|c | 5 %\* |",
        "",
        r"\* holds",
    ]


def test_the_stage_writes_what_it_declares(tmp_path):
    study = write_study(tmp_path / "study", seeds=(11,), rounds=2, steps=2)
    build_report(study, ("merge",))
    report = study.root / "report"
    arguments = [
        *("--episodes", report / "episodes.parquet"),
        *("--train-logs", *study.files("rl/*/*/*/train_log.json")),
    ]
    for name in ("one", "two"):
        run_stage(
            "paper", "--config", json.dumps(study.config), *arguments, "--out", tmp_path / name
        )
    written = sorted(path.name for path in (tmp_path / "one").iterdir())
    pictures = {name.rsplit("_", 1)[0] for name in written if name.endswith((".svg", ".pdf"))}
    assert {"forest", "learning_curves", "health"} <= pictures
    assert not {"credit", "credit_last_round"} & pictures
    assert len(written) == 2 + len(pictures) * len(SIZES) * 2
    for name in written:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), (
            name
        )
    svg = (tmp_path / "one/forest_column.svg").read_text()
    assert 'width="244.8pt"' in svg  # 3.4 inches of 72 points


@pytest.mark.slow
def test_latex_takes_the_table(inputs, tmp_path):
    if not shutil.which("pdflatex"):
        pytest.skip("needs pdflatex")
    table = latex(paper_table(inputs.comparison, inputs.arms), "A caption", "tab:a")
    head = r"\documentclass{article}\usepackage{booktabs}\begin{document}"
    text = head + table + r"\end{document}"
    (tmp_path / "a.tex").write_text(text)
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "a.tex"], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 0, done.stdout[-2000:]
