"""Figures that only some studies have: which ones, and the numbers in them."""

import json
import re
from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from report_fixtures import (
    FIT_SECONDS,
    STUDIES,
    build_report,
    inputs_of,
    shipped,
    write_merged_study,
    write_study,
)

from hgrpo.report.draw import study_drawings
from hgrpo.report.figures.dose_response import dose_response
from hgrpo.report.figures.learning import learning_curves
from hgrpo.report.figures.outcome import forest, task_types
from hgrpo.report.figures.training import protocol_comparison
from hgrpo.report.logs import read_first_turns, read_fits, read_last_turns
from hgrpo.report.names import figure_names, table_names
from hgrpo.report.style import read_index, save_all
from hgrpo.report.tables import all_tables, cost, scripted_players
from hgrpo.stages import figures
from hgrpo.stages.paths import Job
from hgrpo.study.study import load_study

SMALL = {"seeds": (11, 23), "rounds": 2, "n_test": 24, "n_validation": 12, "steps": 2}
CORNERS = (
    "SFTOnly",
    "flat_K8_hi_guard",
    "flat_K8_lo_guard",
    "turnrd_K8_hi_guard",
    "turnrd_K8_lo_guard",
)
# Of a round in the fixtures.
BRANCHES = {"cf_branches": 900 + 901, "cf_replies": 8000, "cf_tokens": 220_000}


def picked(study, names):
    return {name: arm for name, arm in shipped(study).items() if name in names}


def corners():
    return picked("tier2_factorial", CORNERS)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    return write_merged_study(folder, settings=shipped("alpha_sweep"), **SMALL)


@pytest.fixture(scope="module")
def factorial(tmp_path_factory):
    return write_merged_study(tmp_path_factory.mktemp("cells"), settings=corners(), **SMALL)


@pytest.fixture(scope="module")
def calibration(tmp_path_factory):
    names = ("SFTOnly", "flatGRPO", "Oracle", "OracleNoisy50", "OracleShuffled", "OracleFlipped")
    arms = picked("calibration_hard", names)
    return write_merged_study(tmp_path_factory.mktemp("calibration"), settings=arms, **SMALL)


@pytest.fixture(scope="module")
def counterfactual(tmp_path_factory):
    arms = picked("cf_supervision", ("SFTOnly", "flatGRPO", "TurnRDV2CF", "Counterfactual"))
    arms |= picked("bakeoff_plateau_plus", ("TurnRDV1", "LLMJudge"))
    options = SMALL | {"rounds": 3}
    return write_merged_study(tmp_path_factory.mktemp("cf"), settings=arms, **options)


def fits_of(study):
    return read_fits(study.files("credit_fit/*/*/*/train_log.json"))


def test_the_ticks_of_the_forest_have_the_points_baseline(tmp_path):
    arms = picked("bakeoff", ("SFTOnly", "flatGRPO", "flatGRPO_AA", "RandomCredit"))
    inputs = inputs_of(write_merged_study(tmp_path, settings=arms, **SMALL))
    table = inputs.comparison.against_reference.set_index("method")
    # Runs of the twin count as runs of flat GRPO, so their lead is half of it in other differences.
    assert table["baseline_runs"].to_dict() == {"flatGRPO_AA": 2, "RandomCredit": 4}
    table["difference"] += pd.Series({"flatGRPO_AA": 0.1, "RandomCredit": -0.05})
    seeds = inputs.comparison.seeds.copy()
    seeds.loc[seeds["method"] == "flatGRPO_AA", "endpoint"] += 0.1
    comparison = replace(inputs.comparison, seeds=seeds, against_reference=table.reset_index())
    ax = forest(comparison, inputs.arms).figure.axes[0]
    ticks = [line.get_xdata() for line in ax.lines if line.get_marker() == "|"]
    means = [each.mean() for each in ticks if len(each) == 2]
    assert means == pytest.approx((100 * table["difference"]).tolist())
    plt.close("all")


def drawn(study, folder):
    inputs, paths = inputs_of(study), study.files("rl/*/*/*/turns.parquet")
    turns, last = read_first_turns(paths), read_last_turns(paths, inputs.arms.fitted)
    figures = study_drawings(inputs, turns, last, fits_of(study))
    return [entry["name"] for entry in save_all(figures, folder)]


def rows_of(study, pattern):
    return [row for path in study.files(pattern) for row in json.loads(path.read_bytes())["rows"]]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Study -> folder of its figures, drawn once."""
    folders = {}

    def of(study):
        if study.root not in folders:
            folders[study.root] = tmp_path_factory.mktemp("pictures")
            drawn(study, folders[study.root])
        return folders[study.root]

    return of


@pytest.mark.parametrize(
    ("shape", "has"),
    [
        ("sweep", {"alpha", "alpha_diagnostics", "turnrd"}),
        ("factorial", {"factorial", "turnrd"}),
        ("counterfactual", {"turnrd"}),
        ("calibration", {"dose_response"}),
    ],
)
def test_what_is_drawn_is_what_was_announced(shape, has, request, pictures):
    study = request.getfixturevalue(shape)
    names = figure_names(study.config, study.config["rounds"])
    folder = pictures(study)
    assert [entry["name"] for entry in read_index(folder)] == names
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.svg")} == {
        f"{name}.svg" for name in names
    }
    only_some = {"alpha", "alpha_diagnostics", "factorial", "turnrd", "dose_response"}
    assert only_some & set(names) == has


def test_the_stage_names_the_turns_of_last_rounds_only_of_arms_that_were_fitted():
    study = load_study(STUDIES / "bakeoff_plateau.yaml", {"seeds": "11"})
    named = figures.inputs(study, Job())
    later = [path for path in named["turns"] if "/round_1/" not in path]
    assert later == [f"rl/{arm}/seed_11/round_5/turns.parquet" for arm in ("TurnRDV1", "TurnRDV2")]
    assert len(named["turns"]) == 6 + 2
    assert named["sequences"] == [path.replace("turns", "sequences") for path in named["turns"]]
    short = load_study(STUDIES / "bakeoff_plateau.yaml", {"seeds": "11", "rounds": 1})
    once = figures.inputs(short, Job())["turns"]
    assert len(once) == len(set(once)) == 6


def test_a_single_round_has_no_fit_to_draw(tmp_path):
    options = SMALL | {"rounds": 1, "seeds": (11,)}
    study = write_merged_study(tmp_path / "study", settings=corners(), **options)
    (tmp_path / "figures").mkdir()
    names = figure_names(study.config, 1)
    assert drawn(study, tmp_path / "figures") == names
    assert "turnrd" not in names and "factorial" in names


def test_one_arm_alone(tmp_path):
    arms = picked("bakeoff", ("flatGRPO",))
    study = write_merged_study(tmp_path / "study", settings=arms, **SMALL)
    (tmp_path / "figures").mkdir()
    assert drawn(study, tmp_path / "figures") == figure_names(study.config, 2)


def test_tables_are_those_announced(factorial, sweep):
    for study, extra in ((factorial, {"factorial"}), (sweep, set())):
        tables = all_tables(inputs_of(study), scripted_players({}))
        assert list(tables) == table_names(study.config)
        assert {"factorial"} & set(tables) == extra


def test_the_factorial_is_drawn_from_the_effects(factorial, pictures):
    folder = pictures(factorial)
    table = pd.read_csv(folder / "factorial.csv")
    assert table["effect"].tolist() == ["credit", "lr", "credit x lr"]
    assert table["label"].iloc[1] == "learning rate: 0.0001\ninstead of 0.0003"
    tables = all_tables(inputs_of(factorial), scripted_players({}))
    cells = tables["factorial"].set_index("method")["endpoint"]
    assert table["difference"].iloc[1] == pytest.approx(
        (cells["flat_K8_lo_guard"] + cells["turnrd_K8_lo_guard"]) / 2
        - (cells["flat_K8_hi_guard"] + cells["turnrd_K8_hi_guard"]) / 2
    )


def test_the_dose_response_holds_every_arm_of_a_known_correlation(calibration, pictures):
    folder = pictures(calibration)
    table = pd.read_csv(folder / "dose_response.csv")
    means = table[table["seed"].isna() & (table["measure"] == "endpoint")].set_index("method")
    assert means["correlation"].dropna().to_dict() == {
        "OracleShuffled": 0.0,
        "OracleNoisy50": 0.5,
        "Oracle": 1.0,
    }
    assert means.index[-1] == "flatGRPO"
    runs = inputs_of(calibration).comparison.seeds.groupby("method")["endpoint"].mean()
    assert means.loc["Oracle", "value"] == pytest.approx(runs["Oracle"])
    entry = next(each for each in read_index(folder) if each["name"] == "dose_response")
    # The fixture does not say how many steps a round has.
    assert "Trajectories to" in entry["alt"] and "of 2 runs)" in entry["alt"]
    assert "Shuffled credit is at 0" in entry["caption"]


def test_the_dose_response_is_drawn_in_steps_where_they_are_known(calibration):
    arms = [name for name, arm in calibration.config["methods"].items() if arm["train"]]
    known = {"step_trajectories": dict.fromkeys(arms, 256)}
    config = calibration.config | known
    inputs = inputs_of(replace(calibration, config=config))
    drawing = dose_response(inputs.comparison, inputs.arms, inputs.doses)
    assert "A step trains on 256 trajectories." in drawing.caption
    titles = [ax.get_title(loc="left") for ax in drawing.figure.axes if ax.get_visible()]
    assert len(titles) == 1 + drawing.data["threshold"].nunique()
    assert all(title.startswith("Steps to") for title in titles[1:])
    assert overlaps(drawing.figure) == []
    plt.close(drawing.figure)


def test_runs_that_never_got_there_are_drawn_hollow(calibration):
    config = calibration.config | {"thresholds": [1.0]}
    inputs = inputs_of(replace(calibration, config=config))
    drawing = dose_response(inputs.comparison, inputs.arms, inputs.doses)
    marks = [line for line in drawing.figure.axes[1].lines if line.get_marker() == "^"]
    hollow = [line for line in marks if line.get_markerfacecolor() == "none"]
    assert len(hollow) == 3 * 2
    assert {line.get_ydata()[0] for line in hollow} == {2 * 512}
    plt.close(drawing.figure)


def test_alpha_numbers_against_the_logs(sweep, pictures):
    folder = pictures(sweep)
    table = pd.read_csv(folder / "alpha.csv")
    assert table["alpha"].tolist() == [0, 0.25, 0.5, 0.75, 1]
    rows = rows_of(sweep, "rl/TurnRDV2_a025/*/*/train_log.json")
    quarter = table[table["alpha"] == 0.25].iloc[0]
    dead = sum(row["dead_groups"] for row in rows) / sum(row["n_groups"] for row in rows)
    assert quarter["dead_share"] == pytest.approx(dead)
    size = sum(row["mean_abs_token_adv"] for row in rows) / len(rows)
    assert quarter["mean_abs_token_adv"] == pytest.approx(size)
    lines = pd.read_csv(folder / "alpha_diagnostics.csv")
    assert lines.groupby("alpha").size().tolist() == [4] * 5


def test_turnrd_measures_stand_only_where_they_were_logged(counterfactual, pictures):
    folder = pictures(counterfactual)
    table = pd.read_csv(folder / "turnrd.csv")
    by_measure = table.groupby("measure")["method"].unique().map(set).to_dict()
    assert by_measure["cls_query_norm"] == {"TurnRDV1"}
    assert by_measure["alpha_cf_corr"] == {"TurnRDV2CF"}
    assert by_measure["validation_loss"] == {"TurnRDV1", "TurnRDV2CF"}
    fits = table[table["epoch"] > 0]
    assert set(fits["round"]) == {1, 2}, "no fit follows the last round"
    svg = (folder / "turnrd.svg").read_text(encoding="utf-8")
    assert "norm of the query" in svg and "against CF" in svg


def test_counterfactual_branches_count_as_trajectories(counterfactual, pictures):
    folder = pictures(counterfactual)
    spent = pd.read_csv(folder / "equal_budget.csv").set_index(["method", "round"])
    assert spent.loc[("flatGRPO", 2), "trajectories"] == 2 * 2 * 256
    for arm in ("Counterfactual", "TurnRDV2CF"):
        played = 2 * (2 * 256 + BRANCHES["cf_branches"])
        assert spent.loc[(arm, 2), "trajectories"] == played
        flat = spent.loc[("flatGRPO", 2), "tokens"]
        assert spent.loc[(arm, 2), "tokens"] == flat + 2 * BRANCHES["cf_tokens"]
    index = json.loads((folder / "index.json").read_bytes())
    caption = next(entry["caption"] for entry in index if entry["name"] == "equal_budget")
    assert "Continuations are included" in caption


def test_curves_against_all_play_count_continuations(counterfactual, pictures):
    folder = pictures(counterfactual)
    table = pd.read_csv(folder / "learning_by_play.csv").set_index(["method", "round"])
    assert table.loc[("flatGRPO", 0), ["trajectories", "replies"]].tolist() == [0, 0]
    # Two steps a round, of 256 rollouts with 8 replies each.
    assert table.loc[("flatGRPO", 3), ["trajectories", "replies"]].tolist() == [1536, 12_288]
    # And 900 + 901 continuations with 8,000 new replies; replayed turns are no replies.
    mine = table.loc[("Counterfactual", 3), ["trajectories", "replies"]]
    assert mine.tolist() == [3 * (512 + 1801), 3 * (4096 + 8000)]
    steps = pd.read_csv(folder / "learning_curves.csv").set_index(["method", "round"])
    assert table["success"].equals(steps["success"])
    index = json.loads((folder / "index.json").read_bytes())
    caption = next(entry["caption"] for entry in index if entry["name"] == "learning_by_play")
    assert "A continuation counts as one trajectory" in caption


def test_cost_shows_extra_play_and_calls(counterfactual):
    inputs = inputs_of(counterfactual)
    table = cost(inputs.logs, inputs.arms).set_index("method")
    assert table.loc["Counterfactual", "cf_branches"] == 3 * BRANCHES["cf_branches"]
    assert table.loc["TurnRDV2CF", "cf_replies"] == 3 * BRANCHES["cf_replies"]
    assert table.loc["Counterfactual", "trajectories"] == 3 * (512 + BRANCHES["cf_branches"])
    assert table.loc["Counterfactual", "replies"] == 3 * (2 * 2048 + BRANCHES["cf_replies"])
    assert table.loc["LLMJudge", "judge_calls"] == 3 * (240 + 239)
    assert table.loc["LLMJudge", "judge_fallbacks"] == 3
    assert table.loc["LLMJudge", "judge_dollars"] == pytest.approx(0.06)
    assert pd.isna(table.loc["flatGRPO", "judge_calls"])
    assert pd.isna(table.loc["LLMJudge", "cf_branches"])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Written by the command lines, fits and all."""
    arms = picked("bakeoff_plateau_plus", ("SFTOnly", "flatGRPO", "LLMJudge", "TurnRDV1"))
    options = SMALL | {"seeds": (11,)}
    return build_report(write_study(tmp_path_factory.mktemp("page"), settings=arms, **options))


def test_the_page_has_the_figure_and_the_columns(page):
    html = page.read_text(encoding="utf-8")
    assert 'id="figure-turnrd"' in html
    table = html[html.index('aria-label="Cost"') :].split("</table>")[0]
    headings = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', table)
    assert headings[-4:] == ["judge calls", "judge cache hits", "judge fallbacks", "judge dollars"]
    judge = table[table.index("LLMJudge") :].split("</tr>")[0]
    cells = re.findall(r'<td class="num">([^<]*)</td>', judge)
    assert len(cells) == len(headings) - 1 and cells[-4:] == ["958", "66", "2", "0.04"]
    flat = table[table.index("flat GRPO") :].split("</tr>")[0]
    assert re.findall(r'<td class="num">([^<]*)</td>', flat)[-1] == "\u2013"


def test_who_judged_is_said_wherever_the_judge_is_named(page):
    """A label is wrapped here and there, but nothing of it may be left out."""
    html = page.read_text(encoding="utf-8")
    body = re.sub(r"<pre.*?</pre>", "", html, flags=re.DOTALL)  # the configuration
    body = re.sub(r'\b(id|href|xlink:href|aria-labelledby)="[^"]*"|url\([^)]*\)', "", body)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    text = " ".join(re.sub(r"<[^>]+>", " ", body).split())
    named = text.count("LLMJudge")
    assert named > 10
    assert text.count("LLMJudge (offline rubric)") == named
    for path in (page.parent / "figures").glob("*.svg"):
        words = " ".join(re.findall(r">([^<>]+)</text>", path.read_text(encoding="utf-8"))).split()
        if "LLMJudge" in words:
            assert "(offline" in words and "rubric)" in words, path.name


@pytest.fixture(scope="module")
def sixteen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sixteen")
    options = SMALL | {"n_validation": 6}
    return inputs_of(
        write_merged_study(folder, settings=shipped("bakeoff_plateau_plus"), **options)
    )


def overlaps(figure):
    """Pairs of texts that cover one another, and texts that leave the figure."""
    figure.canvas.draw()
    unseen = ticks_out_of_sight(figure)
    boxes = [
        (text.get_text(), text.get_window_extent().padded(-1.5))
        for text in figure.findobj(plt.Text)
        if text.get_text().strip() and text.get_visible() and text not in unseen
    ]
    overlapping = []
    for index, (text, box) in enumerate(boxes):
        if box.x0 < 0 or box.x1 > figure.bbox.x1:
            overlapping.append((text, "outside"))
        overlapping += [
            (text, other) for other, theirs in boxes[index + 1 :] if box.overlaps(theirs)
        ]
    return overlapping


def ticks_out_of_sight(figure):
    """Labels that matplotlib keeps for ticks beyond the limits, and does not draw."""
    return {
        label
        for ax in figure.axes
        for axis in (ax.xaxis, ax.yaxis)
        for low, high in [sorted(axis.get_view_interval())]
        for tick in axis.get_major_ticks()
        if not low <= tick.get_loc() <= high
        for label in (tick.label1, tick.label2)
    }


@pytest.mark.parametrize("maker", [learning_curves, forest, task_types, protocol_comparison])
def test_sixteen_arms_leave_every_name_readable(sixteen, maker):
    arguments = {
        protocol_comparison: (sixteen.logs, sixteen.arms),
        learning_curves: (sixteen.arms, sixteen.stops),
    }
    drawing = maker(sixteen.comparison, *arguments.get(maker, (sixteen.arms,)))
    texts = " ".join(text.get_text() for text in drawing.figure.findobj(plt.Text)).split()
    for name in sixteen.arms.trained[1:]:
        for word in sixteen.arms.label(name).split():
            assert word in texts, (name, word)
    assert overlaps(drawing.figure) == []
    widths = [ax.get_position().width for ax in drawing.figure.axes]
    assert min(widths) > (0.3 if maker is learning_curves else 0.5), "names leave no room"
    plt.close(drawing.figure)


def test_the_cost_of_learnt_credit_includes_its_fits(counterfactual):
    inputs = inputs_of(counterfactual)
    table = cost(inputs.logs, inputs.arms).set_index("method")
    for name in ("TurnRDV1", "TurnRDV2CF", "Counterfactual"):
        played = sum(row["elapsed_s"] for row in rows_of(counterfactual, f"rl/{name}/*/*/*.json"))
        # Two seeds, and two fits between the three rounds of each.
        fits = 2 * FIT_SECONDS if name.startswith("TurnRD") else 0.0
        assert table.loc[name, "seconds"] == pytest.approx(played / 2 + fits)
        assert table["fit_s"].fillna(0.0)[name] == pytest.approx(fits)
    # They come before the round that reads them.
    logs = inputs.logs[(inputs.logs["method"] == "TurnRDV1") & inputs.logs["fit_s"].notna()]
    assert list(logs[["round", "step"]].itertuples(index=False, name=None)) == [(2, 0), (3, 0)] * 2
