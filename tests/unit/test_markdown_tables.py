"""Tables for pages: what they say of a row, and that the project's own pages say nothing else."""

import evidence
import markdown_tables as markdown
import page_blocks
import pandas as pd
import publish
import pytest

from hgrpo.errors import UserError


@pytest.fixture
def tables():
    interval = {"lower": 0.3, "upper": 0.5}
    difference = {"difference": 0.021, "lower": -0.01, "upper": 0.052}
    sft = {"baseline": "SFTOnly", "baseline_temperature": 0.7}
    return {
        "methods": pd.DataFrame(
            [
                {"method": "SFTOnly", "label": "SFT", "temperature": 0.0, "success": 0.324},
                {"method": "SFTOnly", "label": "SFT", "temperature": 0.7, "success": 0.355},
                {"method": "flat", "label": "flat GRPO", "temperature": 0.0, "success": 0.4},
                {"method": "A", "label": "arm A", "temperature": 0.0, "success": 0.421},
            ]
        ).assign(
            mean_return=lambda table: table["success"],
            return_lower=0.2,
            return_upper=0.875,
            **interval,
        ),
        "against_reference": pd.DataFrame(
            [{"method": "A", "baseline": "flat", "verdict": "inconclusive"} | difference]
        ),
        "against_sft": pd.DataFrame(
            [{"method": name, "verdict": "better"} | sft | difference for name in ("flat", "A")]
        ),
        "effects": pd.DataFrame([{"label": "K: 4\ninstead of 8", "verdict": "worse"} | difference]),
    }


def test_results_by_hand(tables):
    around = " (30.0\u00a0% to 50.0\u00a0%)"
    gain = "+2.1 (\u22121.0 to +5.2)"
    assert markdown.results(tables).splitlines() == [
        "| arm | test success | against flat GRPO, points | against SFT at T = 0.7, points |",
        "| --- | --- | --- | --- |",
        f"| SFT, greedy | 32.4\u00a0%{around} |  |  |",
        f"| SFT, T = 0.7 (best on validation) | 35.5\u00a0%{around} |  |  |",
        f"| flat GRPO | 40.0\u00a0%{around} | reference | {gain}, better |",
        f"| arm A | 42.1\u00a0%{around} | {gain}, inconclusive | {gain}, better |",
    ]


def test_blocks_are_made_anew_and_the_rest_is_left_alone(tables):
    page = "before\n<!-- effects square -->\nold\n<!-- end -->\nafter"
    filled = page_blocks.fill(page, {"square": tables})
    assert filled.startswith("before\n<!-- effects square -->\n| effect | points |")
    assert "| K: 4 instead of 8 | +2.1 (\u22121.0 to +5.2), worse |\n<!-- end -->\nafter" in filled
    assert page_blocks.fill(filled, {"square": tables}) == filled
    for wrong in ("<!-- effect square -->", "<!-- effects circle -->"):
        with pytest.raises(UserError, match=wrong):
            page_blocks.fill(f"{wrong}\nold\n<!-- end -->", {"square": tables})


def test_our_cell_of_a_row_that_names_a_method(tables):
    page = "| flat GRPO (`flat`) | | 2 |\n| other (`B`) | 3 | 4 |\n| no name | 5 | 6 |"
    assert page_blocks.fill_rates(page, markdown.greedy_rates(tables)).splitlines() == [
        "| flat GRPO (`flat`) | 40.0\u00a0% (30.0\u00a0% to 50.0\u00a0%) | 2 |",
        "| other (`B`) | not run | 4 |",
        "| no name | 5 | 6 |",
    ]


def test_the_projects_pages_say_what_its_tables_say(project):
    pages = publish.filled(project / "docs", project / "configs/studies")
    assert len(pages) == 4
    for page, text in pages.items():
        assert page.read_text(encoding="utf-8") == text, f"{page}: run workflow_scripts/publish.py"
    results, calibration, statistics, published = pages
    written = "".join(pages[page] for page in (results, calibration, statistics))
    for study in (project / "docs/tables").iterdir():
        blocks = {"methods.csv": "results", "truth.csv": "truth", "cells.csv": "verdicts"}
        made = [block for name, block in blocks.items() if (study / name).is_file()]
        # The tuning of a study is published before its results, and so are its first slices.
        names = [path.name for path in study.iterdir()]
        assert made or names == ["tuning.csv.gz"] or evidence.incomplete(study)
        assert all(f"<!-- {block} {study.name} -->" in written for block in made)
    flat = markdown.greedy_rates(markdown.read_tables(project / "docs/tables/bakeoff_plateau"))[
        "flatGRPO"
    ]
    assert f"(`flatGRPO`) | {flat} |" in pages[published]


def test_the_simulation_of_verdicts_by_hand():
    cells = pd.DataFrame(
        [
            ("taken", "reference", False, "equal", False, 0.02, 0.03, 0.8),
            ("taken", "reference", True, "equal", False, 0.01, 0.02, 0.9),
            ("taken", "reference", False, "ramp", False, 0.03, 0.04, 0.5),
            ("taken", "reference", False, "ramp", True, 0.04, 0.05, 0.1),
            ("taken", "fixed", False, "equal", False, 0.005, 0.006, 0.4),
        ],
        columns=["analysis", "baseline", "twin", "spreads", "collapse", "either", "upper", "power"],
    ).assign(seeds=5, comparisons=7, better=0.01, worse=0.02, coverage=0.951)
    assert markdown.verdicts({"cells": cells}).splitlines()[2:] == [
        "| 5 | **taken** | 2.0 % (3.0) | 3.0 % (4.0) | 4.0 % (5.0) | 95 % | 85 % |"
    ]
    assert markdown.verdict_cells({"cells": cells}).splitlines()[2:] == [
        "| 5 | 7 | the SFT policy | 0.5 % (0.6) | 1.0 % | 2.0 % | 40 % |",
        "| 5 | 7 | flat GRPO | 4.0 % (5.0) | 1.0 % | 2.0 % | 80 % |",
        "| 5 | 7 | flat GRPO and its twin | 1.0 % (2.0) | 1.0 % | 2.0 % | 90 % |",
    ]


def test_a_calibration_that_is_published_has_nothing_left_to_write(project):
    page = (project / "docs/calibration.md").read_text(encoding="utf-8")
    studies = ("calibration_hard", "calibration_easy", "calibration_easy_2")
    if all((project / "docs/tables" / name).is_dir() for name in studies):
        assert "TO WRITE" not in page


def test_a_verdict_that_changed_stands_beside_the_old_one(tables):
    rows = {"difference": 0.021, "lower": -0.01, "upper": 0.052, "n_seeds": 5}
    verdicts = [("better", "inconclusive"), ("better", "better"), ("inconclusive", "worse")]
    table = pd.DataFrame(
        [{"label": now, "verdict": now, "verdict_before": was} | rows for now, was in verdicts]
    )
    gain = "+2.1 (\u22121.0 to +5.2)"
    *lines, _, note = markdown.effects({"effects": table}).splitlines()[2:]
    assert [line.split(" | ")[1] for line in lines] == [
        f"{gain}, better (was inconclusive) |",
        f"{gain}, better |",
        f"{gain}, inconclusive (was worse) |",
    ]
    assert "2 of 3 verdicts changed" in note
    few = table.assign(n_seeds=3, verdict="too few seeds")
    *lines, _, note = markdown.effects({"effects": few}).splitlines()[2:]
    assert [line.split(" | ")[1] for line in lines] == [
        f"{gain} |",
        f"{gain} (was better) |",
        f"{gain} (was worse) |",
    ]
    assert note.startswith("*3 seeds are too few for a [verdict]")


def test_a_study_that_is_planned_is_marked_as_not_published(tables):
    page = "".join(
        f"<!-- {kind} {study}{name} -->\nold\n<!-- end -->\n"
        for study in ("first", "second")
        for kind, name in (("effects", ""), ("figure", " forest"))
    )
    figures = {"first": {"forest"}}
    filled = page_blocks.fill(page, {"first": tables}, {"first", "second"}, figures)
    assert filled.count(page_blocks.NOT_PUBLISHED) == 2
    assert "![Paired differences](figures/first/forest.svg)\n<!-- end -->" in filled
    assert "| K: 4 instead of 8 |" in filled.split("second")[0]
    with pytest.raises(UserError, match="effects second -->: no such study"):
        page_blocks.fill(page, {"first": tables}, {"first"}, figures)
    with pytest.raises(UserError, match="the figure is not published"):
        page_blocks.fill(page, {"first": tables}, {"second"})
    with pytest.raises(UserError, match="effects first -->: 'effects' is not published"):
        page_blocks.fill(page, {"first": {}}, {"second"}, figures)
    with pytest.raises(UserError, match="no such table or figure"):
        page_blocks.fill("<!-- figure first other -->\n<!-- end -->", {}, {"first"})


def test_the_comparison_with_truth_is_copied_if_its_target_has_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agreement = tmp_path / "results/credit_agreement"
    with pytest.raises(
        UserError, match="truth.csv is missing; run the Snakemake target that makes"
    ):
        publish.copy_further(agreement, "some", publish.TRUTH)
    agreement.mkdir(parents=True)
    for name in publish.TRUTH:
        (agreement / name).write_text(name, encoding="utf-8")
    publish.copy_further(agreement, "some", publish.TRUTH)
    places = [
        tmp_path / "docs" / place for place in ("tables/some/truth.csv", "figures/some/closest.svg")
    ]
    assert all(path.read_text(encoding="utf-8") == path.name for path in places)


def test_the_sample_report_keeps_the_curves_of_each_arms_first_seed():
    curve = '<figure id="figure-runs/{}_seed_{}">\n<svg>\n  <g>{}</g>\n</svg></figure>\n'
    runs = [("A_A", 11, "x"), ("A_A", 23, "y"), ("B", 23, "z")]
    page = f"<p>\n one</p>{''.join(curve.format(*run) for run in runs)}<p>\nEnd</p>\n"
    assert publish.shortened(page) == (
        '<p>\n one</p><figure id="figure-runs/A_A_seed_11">\n<svg> <g>x</g> </svg></figure>\n'
        '<figure id="figure-runs/B_seed_23">\n<svg> <g>z</g> </svg></figure>\n<p>\nEnd</p>\n'
    )
