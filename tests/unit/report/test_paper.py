"""Tables and figures for a paper."""

import json
import shutil
import subprocess
from dataclasses import replace

import pandas as pd
import pytest
from latex_width import column_inches
from report_fixtures import build_report, inputs_of, write_merged_study, write_study
from stage_settings import run_stage

from hgrpo.report.latex import Cell, column_table, escaped
from hgrpo.report.paper import SIZES, caption, markdown, paper_table


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return inputs_of(write_merged_study(tmp_path_factory.mktemp("paper"), rounds=2, steps=2))


def test_a_row_holds_the_numbers_of_the_comparison(inputs):
    comparison = inputs.comparison
    table = paper_table(comparison, inputs.arms)
    endpoint, reference, untrained = table.columns[1:]
    assert endpoint == "success"
    about = caption(comparison, inputs.arms)
    assert about.startswith(
        "Mean success over rounds 1 to 2 in per cent, with 95 % intervals: "
        f"{comparison.n_test} test tasks, "
    )
    assert "twin" not in about
    runs = comparison.against_reference["n_seeds"] * 2
    pooled = replace(
        comparison, against_reference=comparison.against_reference.assign(baseline_runs=runs)
    )
    assert caption(pooled, inputs.arms).endswith(
        "Runs of the A/A twin are pooled with those of flat GRPO: differences of the other arms "
        "are from the mean of both, not from the reference's mean in this table."
    )
    assert reference == "against flat GRPO"
    assert untrained.startswith("against SFT only, ")
    row = table.set_index("method").loc["Progressive"]
    difference = comparison.against_reference.set_index("method").loc["Progressive"]
    star = "*" if difference["verdict"] in ("better", "worse") else ""
    ends = f"{100 * difference['lower']:+.1f} to {100 * difference['upper']:+.1f}"
    assert row[reference] == Cell(f"{100 * difference['difference']:+.1f}{star}", ends)
    assert str(row[reference]).endswith(f" ({ends})")
    assert str(table.set_index("method").loc["flat GRPO", reference]) == "\u2013"
    values = table[endpoint].map(lambda cell: float(cell.value))
    assert values.is_monotonic_decreasing


def test_latex_escapes_what_means_something():
    assert escaped(r"a_b & 5 % of {x} \ ~^#$") == (
        r"a\_b \& 5 \% of \{x\} \textbackslash{} \textasciitilde{}\textasciicircum{}\#\$"
    )
    assert escaped("-1.5 (-2 to +3) GPT-4 \u2013 T\u202f= 1") == (
        r"$-$1.5 ($-$2 to +3) GPT-4 -- T\,= 1"
    )
    assert escaped("TurnRD v2 \u03b1=0 \u2212 x") == r"TurnRD v2 $\alpha$=0 $-$ x"
    table = pd.DataFrame({"arm": ["a_b|c"], "score": [Cell("5 %*")]})
    assert column_table(table, "A & B", "tab:x").splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{A \& B}",
        r"\label{tab:x}",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{3pt}",
        r"\begin{tabular}{@{}lr@{}}",
        r"\toprule",
        r"arm & score \\",
        r"\midrule",
        r"a\_b|c & 5 \%* \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    noted = column_table(table, "A & B", "tab:x", ["5 % less"]).splitlines()
    assert noted[-2:] == [
        r"\par\smallskip\parbox{\linewidth}{\scriptsize 5 \% less}",
        r"\end{table}",
    ]
    assert markdown(table, ["* holds", "a_b"]).splitlines() == [
        "| arm | score |",
        "| --- | ---: |",
        r"| a\_b\|c | 5 %\* |",
        "",
        r"\* holds",
        "",
        r"a\_b",
    ]


def test_a_column_breaks_names_and_puts_intervals_below():
    rows = [["Counterfactual, amortised", Cell("5.0", "4.0 to 6.0")], ["flat GRPO", Cell("4.0")]]
    table = pd.DataFrame(rows, columns=["method", "against SFT only, T\u00a0=\u00a00.5"])
    text = column_table(table, "", "tab:x")
    assert text.split("\\toprule\n")[1].split("\\bottomrule")[0].splitlines() == [
        r"method & against SFT \\",
        r" & only, T~=~0.5 \\",
        r"\midrule",
        r"Counterfactual, & 5.0 \\",
        r"amortised & {\scriptsize 4.0 to 6.0} \\",
        r"\addlinespace[2pt]",
        r"flat GRPO & 4.0 \\",
    ]


def test_the_table_of_results_fits_a_column(inputs):
    table = paper_table(inputs.comparison, inputs.arms)
    assert column_inches(column_table(table, "", "tab:x")) < SIZES["column"]
    # The widest that may come: long names, and intervals of two digits with signs.
    names = ["Counterfactual, amortised", "TurnRD v2 + CF, spread over rounds", "flat GRPO"]
    against = Cell("-20.4*", "-28.4 to +48.6")
    cells = [Cell("44.4", "28.4 to 48.6"), against, against]
    heads = ["method", "success", "against flat GRPO", "against SFT only, T\u00a0=\u00a00.5"]
    widest = pd.DataFrame([[name, *cells] for name in names], columns=heads)
    assert column_inches(column_table(widest, "", "tab:x")) < SIZES["column"]


@pytest.mark.slow
def test_the_stage_writes_what_it_declares(tmp_path):
    study = write_study(tmp_path / "study", seeds=(11,), rounds=2, steps=2)
    build_report(study, ("merge",))
    report, findings = study.root / "report", tmp_path / "findings.txt"
    findings.write_text("Inconclusive.\nMost groups are dead.\n", encoding="utf-8")
    arguments = [
        *("--findings", findings),
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
    for name in ("results.md", "results.tex"):
        assert "Most groups are dead." in (tmp_path / "one" / name).read_text(encoding="utf-8")
    svg = (tmp_path / "one/forest_column.svg").read_text(encoding="utf-8")
    assert 'width="244.8pt"' in svg  # 3.4 inches of 72 points


@pytest.mark.slow
def test_latex_takes_the_table(inputs, tmp_path):
    if not shutil.which("pdflatex"):
        pytest.skip("needs pdflatex")
    table = column_table(paper_table(inputs.comparison, inputs.arms), "A caption", "tab:a")
    head = r"\documentclass{article}\usepackage{booktabs}\begin{document}"
    text = head + table + r"\end{document}"
    (tmp_path / "a.tex").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "a.tex"], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 0, done.stdout[-2000:]
