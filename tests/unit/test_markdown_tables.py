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
        "cost": pd.DataFrame(
            [
                {"method": "flat", "label": "flat GRPO", "trajectories": 7680.0},
                {"method": "A", "label": "arm A", "trajectories": 7680.0},
            ]
        ).assign(
            judge_calls=[float("nan"), 6000.0],
            judge_cache_hits=[float("nan"), 80.0],
            cf_replies=float("nan"),
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


def test_the_declared_endpoint_is_what_results_show(tables):
    rows = [
        ["area", "success", True, "SFTOnly", 0.0, 0.3],
        ["area", "success", True, "SFTOnly", 0.7, 0.31],
        ["area", "success", True, "flat", 0.0, 0.2],
        ["area", "success", True, "A", 0.0, 0.25],
        ["last_round", "success", False, "A", 0.0, 0.9],
    ]
    columns = ["endpoint", "score", "declared", "method", "temperature", "mean"]
    endpoints = pd.DataFrame(rows, columns=columns).assign(lower=0.1, upper=0.5)
    lines = markdown.results(tables | {"endpoints": endpoints}).splitlines()
    assert lines[0].startswith("| arm | area: mean test success | against flat GRPO")
    assert lines[-1].startswith("| arm A | 25.0\u00a0% (10.0\u00a0% to 50.0\u00a0%) | +2.1")
    returns = endpoints.assign(score="return", endpoint="budget_1536")
    lines = markdown.results(tables | {"endpoints": returns}).splitlines()
    assert lines[0].startswith("| arm | test score, 1,536 trajectories | against flat GRPO")
    assert lines[4].startswith("| flat GRPO | 20.0 (10.0 to 50.0) | reference")


def test_areas_are_means_of_the_rounds(tables):
    rounds = pd.DataFrame(
        [
            ["SFT", 0, "test", 0.3],
            *(["flat GRPO", number, "test", value] for number, value in ((1, 0.4), (2, 0.8))),
            ["flat GRPO", 1, "validation", 0.9],
            *(["arm A", number, "test", value] for number, value in ((2, 0.5), (1, 0.25))),
        ],
        columns=["label", "round", "panel", "success"],
    )
    assert markdown.areas({"rounds": rounds}).splitlines() == [
        "| arm | after round 1 | area, rounds 1 to 2 | after round 2 |",
        "| --- | --- | --- | --- |",
        "| flat GRPO | 40.0\u00a0% | 60.0\u00a0% | 80.0\u00a0% |",
        "| arm A | 25.0\u00a0% | 37.5\u00a0% | 50.0\u00a0% |",
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


@pytest.fixture
def calibrated(tables):
    """A study with gates, thresholds and doses, in returns."""
    endpoints = pd.DataFrame(
        [["area", "return", True, name, 0.0, 0.4] for name in ("SFTOnly", "flat", "A")],
        columns=["endpoint", "score", "declared", "method", "temperature", "mean"],
    ).assign(lower=0.3, upper=0.5)
    gates = pd.DataFrame(
        [
            ["A", "arm A", "above", 10.0, 0.12, 0.02, 0.22, "passed"],
            ["B", "arm B", "equivalent", 5.0, -0.01, -0.07, 0.05, "failed"],
            ["C", "arm C", "not_above", None, None, None, None, "open"],
        ],
        columns=["method", "label", "expect", "points", "difference", "lower", "upper", "result"],
    )
    thresholds = pd.DataFrame(
        [
            [0.5, "flat", "flat GRPO", 2, 1700.4, -10.0, 2900.0],
            [0.5, "A", "arm A", 3, 500.0, 250.0, 750.0],
            [0.75, "flat", "flat GRPO", 0, 2048.0, None, None],
            [0.75, "A", "arm A", 3, 1024.0, 512.0, 1536.0],
        ],
        columns=["threshold", "method", "label", "reached", "restricted_mean", "lower", "upper"],
    ).assign(n_seeds=3)
    seeds = pd.DataFrame(
        {"difference": [0.03, 0.1], "seeds": [None, 30.0], "fewest": [24.0, 5.0], "most": None}
    )
    doses = pd.DataFrame(
        [
            ["endpoint", None, "A", 0.5, None, 0.6, 0.5, 0.7, None, None, None, None],
            ["endpoint", None, "A", 0.5, 11.0, 0.6, None, None, None, None, None, None],
            ["endpoint", None, "flat", None, None, 0.4, 0.3, 0.5, None, None, None, None],
            ["trajectories", 0.5, "A", 0.5, None, 500, 250, 750, 3, 4.0, 2.0, 6.0],
            ["trajectories", 0.5, "flat", None, None, 1000, 500, 1500, 2, 8.0, 4.0, 12.0],
        ],
        columns=[
            *("measure", "threshold", "method", "correlation", "seed", "value", "lower", "upper"),
            *("reached", "steps", "steps_lower", "steps_upper"),
        ],
    ).assign(n_seeds=3)
    return tables | {
        "endpoints": endpoints,
        "gates": gates,
        "thresholds": thresholds,
        "seeds_needed": seeds,
        "dose_response": doses,
    }


def test_gates_by_hand(calibrated):
    lines = markdown.gates(calibrated).splitlines()
    assert lines[0].startswith("**Gates failed: ")
    assert lines[2] == "| control | claim, against flat GRPO, points | found (interval) | result |"
    assert lines[4:] == [
        "| arm A | above 0, estimate 10 or more | +12.0 (+2.0 to +22.0) | **passed** |",
        "| arm B | equivalent within ±5 | \u22121.0 (\u22127.0 to +5.0) | **failed** |",
        "| arm C | not above | \u2013 | **open** |",
    ]


def test_a_gate_that_was_judged_again_shows_the_result_before(calibrated):
    table = calibrated["gates"].assign(
        notice=10.0, power=[0.876, None, 0.25], result_before=["passed", "passed", "open"]
    )
    lines = markdown.gates(calibrated | {"gates": table}).splitlines()
    assert lines[2].endswith("| found (interval) | a repeat | result |")
    assert lines[4].endswith("| passes in 88\u00a0% at +10 | **passed** |")
    assert lines[5].endswith("|  | **failed** (was passed) |")
    assert lines[6].endswith("| fails in 25\u00a0% at +10 | **open** |")


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
    assert note.startswith("*3 seeds give [no verdict]")


def test_pairs_by_hand(calibrated):
    table = pd.DataFrame(
        [["A", "arm A", "flat", 0.12, 0.02, 0.22, "better"]],
        columns=["method", "label", "baseline", "difference", "lower", "upper", "verdict"],
    )
    assert markdown.pairs(calibrated | {"pairs": table}).splitlines()[2:] == [
        "| arm A | flat GRPO | +12.0 (+2.0 to +22.0), better |"
    ]


def test_thresholds_by_hand(calibrated):
    assert markdown.thresholds(calibrated).splitlines() == [
        "| arm | to 50 | to 75 |",
        "| --- | --- | --- |",
        "| flat GRPO | 1,700 (\u221210 to 2,900), 2 of 3 runs | 2,048, 0 of 3 runs |",
        "| arm A | 500 (250 to 750), 3 of 3 runs | 1,024 (512 to 1,536), 3 of 3 runs |",
    ]


def test_seeds_needed_by_hand(calibrated):
    assert markdown.seeds_needed(calibrated).splitlines()[2:] == [
        "| 3 | more than 200 | 24 | more than 200 |",
        "| 10 | 30 | 5 | more than 200 |",
    ]


def test_doses_by_hand(calibrated):
    table = calibrated["dose_response"]
    assert markdown.dose_response(calibrated).splitlines() == [
        "| correlation with the oracle | arm | area: mean test score | steps to 50 |",
        "| --- | --- | --- | --- |",
        "| 0.5 | arm A | 60.0 (50.0 to 70.0) | 4.0 (2.0 to 6.0), 3 of 3 runs |",
        "|  | flat GRPO | 40.0 (30.0 to 50.0) | 8.0 (4.0 to 12.0), 2 of 3 runs |",
    ]
    without = calibrated | {"dose_response": table.assign(steps=None)}
    lines = markdown.dose_response(without).splitlines()
    assert lines[0].endswith("trajectories to 50 |")
    assert lines[2].endswith("500 (250 to 750), 3 of 3 runs |")


def test_a_study_that_is_planned_is_said_not_to_have_run(calibrated):
    page = "".join(
        f"<!-- {kind} {study}{name} -->\nold\n<!-- end -->\n"
        for study in ("first", "second")
        for kind, name in (("gates", ""), ("figure", " forest"))
    )
    figures = {"first": {"forest"}}
    filled = page_blocks.fill(page, {"first": calibrated}, {"first", "second"}, figures)
    assert filled.count(page_blocks.NOT_PUBLISHED) == 2
    assert "![Paired differences](figures/first/forest.svg)\n<!-- end -->" in filled
    assert "**Gates failed: " in filled.split("second")[0]
    assert page_blocks.fill(filled, {"first": calibrated}, {"second"}, figures) == filled
    with pytest.raises(UserError, match="gates second -->: no such study"):
        page_blocks.fill(page, {"first": calibrated}, {"first"}, figures)


def test_truth_by_hand():
    nothing = float("nan")
    rows = [
        (0, "flat", "flat GRPO", (0.28, 0.25, 0.31), (nothing,) * 3, "no"),
        (0, "near", "near", (0.41, 0.37, 0.45), (0.34, 0.28, 0.4), "yes"),
        (0, "shuffled", "Truth, shuffled", (0.09, -0.07, 0.27), (-0.01, -0.18, 0.2), "no"),
    ]
    names = [f"{kind}_pearson{end}" for kind in ("advantage", "within") for end in ENDS]
    columns = ["round", "method", "label", *names, "beats_shuffled"]
    table = pd.DataFrame([(*a, *b, *c, d) for *a, b, c, d in rows], columns=columns)
    assert markdown.truth({"truth": table}).splitlines()[2:] == [
        "| near | 0.41 (0.37 to 0.45) | 0.34 (0.28 to 0.40), beats shuffled |",
        "| flat GRPO | 0.28 (0.25 to 0.31) |  |",
        "| Truth, shuffled | 0.09 (\u22120.07 to 0.27) | \u22120.01 (\u22120.18 to 0.20) |",
    ]


ENDS = ("", "_lower", "_upper")


def test_an_axis_by_hand(calibrated):
    table = pd.DataFrame(
        [
            ["0", 0.6, 0.5, 0.7, 3, 0, 2.0, 1.5, 1.0, 1.0],
            ["0.1", 0.1, 0.0, 0.2, 3, 2, 2.0, 0.25, 1.0, 4.0],
        ],
        columns=[
            *("value", "endpoint", "lower", "upper", "seeds", "failed"),
            *("mutual_information_first", "mutual_information_last"),
            *("conditional_entropy_first", "conditional_entropy_last"),
        ],
    )
    # Unescaped, the bar of H(Z|X) would begin another column.
    assert markdown.axis(calibrated | {"axis_kl": table}, "kl").splitlines() == [
        "| kl | area: mean test score | runs ended by a rule | I(X;Z), nats, first to last step "
        r"| H(Z\|X), nats, first to last step |",
        "| --- | --- | --- | --- | --- |",
        "| 0 | 60.0 (50.0 to 70.0) | 0 of 3 | 2.00 to 1.50 | 1.00 to 1.00 |",
        "| 0.1 | 10.0 (0.0 to 20.0) | 2 of 3 | 2.00 to 0.25 | 1.00 to 4.00 |",
    ]


def test_slopes_and_dominance_by_hand():
    nothing = float("nan")
    slopes = pd.DataFrame(
        [
            ["PPO", 3, "prefilter", "task", 2.5, 1.234, 1.0, 1.5, 0.004, 0.02, "rises"],
            ["PPO", 3, "prefilter", "regularisers", 1.0, -0.5, *4 * [nothing], "inconclusive"],
            ["PPO", 3, "prefilter", "kl", 9.0, 9.0, 9.0, 9.0, 0.1, 0.1, "rises"],
        ],
        columns=[
            *("method", "round", "pass", "component", "mean"),
            *("slope", "slope_lower", "slope_upper", "p", "p_holm", "verdict"),
        ],
    )
    page = "<!-- slopes s -->\n<!-- end -->\n<!-- dominance s -->\n<!-- end -->"
    dominance = pd.DataFrame(
        [
            ["PPO", 3, "prefilter", "lowest", 0.5, 0.1, 0.9, 0.02, "the regularisers dominate"],
            ["PPO", 3, "postfilter", "highest", 9.0, 9.0, 9.0, 1.0, "inconclusive"],
        ],
        columns=[
            *("method", "round", "pass", "place"),
            *("difference", "difference_lower", "difference_upper", "p_holm", "verdict"),
        ],
    )
    filled = page_blocks.fill(page, {"s": {"slopes": slopes, "dominance": dominance}})
    task = "| PPO | 3 | all groups | task | 2.5 | 1.23 (1 to 1.5) | 0.004 | 0.020 | rises |"
    assert task in filled
    assert "| KL and entropy | 1 | \u22120.5 | \u2013 | \u2013 | inconclusive |" in filled
    first = (
        "| PPO | 3 | all groups | least | 0.5 (0.1 to 0.9) | 0.020 | the regularisers dominate |"
    )
    assert first in filled
    assert "| PPO | 3 | after the filter | most | 9 (9 to 9) | 1.000 | inconclusive |" in filled
    assert filled.count("| PPO") == 4
