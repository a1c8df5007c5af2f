"""What the report says first of one seed, of two, of collapsed runs and of a poor start."""

import json
import re
from dataclasses import replace

import pandas as pd
import publish
import pytest
from report_fixtures import build_report, inputs_of, shipped, write_merged_study, write_study

from hgrpo.evaluation.gates import Gate
from hgrpo.report import findings
from hgrpo.report.cautions import PUBLISHED, cautions, published_spread
from hgrpo.report.tables import scripted_players

SMALL = {"rounds": 2, "n_test": 60, "n_validation": 24, "steps": 2}
ARMS = ("SFTOnly", "flatGRPO", "flatGRPO_AA", "RandomCredit", "Vine", "LLMJudge")
AREA = "in mean success over rounds 1 to 2"
INTERVAL = re.compile(r"\d\.\d(?:\s%)? to [-\u2212+\u00b1]?\d")


@pytest.fixture(scope="module")
def one_page(tmp_path_factory):
    """The page's folder, and the report's log, of a study with one seed and bakeoff's arms."""
    settings = {name: shipped("bakeoff")[name] for name in ARMS}
    root = tmp_path_factory.mktemp("one")
    study = write_study(root, seeds=(11,), settings=settings, **SMALL)
    return build_report(study).parent


@pytest.fixture(scope="module")
def one_seed(tmp_path_factory):
    settings = {name: shipped("bakeoff")[name] for name in ARMS}
    root = tmp_path_factory.mktemp("inputs")
    return inputs_of(write_merged_study(root, seeds=(11,), settings=settings, **SMALL))


@pytest.fixture(scope="module")
def two_seeds(tmp_path_factory):
    return inputs_of(write_merged_study(tmp_path_factory.mktemp("two"), seeds=(11, 23), **SMALL))


def test_one_seed_has_no_interval_anywhere(one_page):
    html = (one_page / "report.html").read_text(encoding="utf-8")
    body = html[: html.index('id="method"')]
    assert INTERVAL.findall(body) == []
    # Tables of trajectories to a threshold keep their columns, with dashes.
    mentions = re.findall(r">([^<>]*\binterval[^<>]*)", body)
    assert len(mentions) == 1 and "so there are no intervals, no verdicts" in mentions[0]
    for path in (*one_page.glob("tables/*.csv"), *one_page.glob("figures/*.csv")):
        table = pd.read_csv(path)
        ends = [name for name in table if re.search(r"(lower|upper|p_value|p_holm)$", name)]
        assert table[ends].isna().all(axis=None), (path.name, ends)
    manifest = json.loads((one_page / "methods_comparison.json").read_text(encoding="utf-8"))
    assert manifest["flatGRPO"]["_endpoint"]["lower"] is None


def with_differences(inputs, differences, seeds=1):
    table = inputs.comparison.against_reference.set_index("method")
    table = table.assign(difference=pd.Series(differences), n_seeds=seeds).reset_index()
    if seeds >= 5:
        table["verdict"] = "inconclusive"
    return replace(inputs.comparison, against_reference=table)


def test_with_one_seed_the_headline_ranks_no_arm_and_leaves_controls_out(one_seed):
    differences = {"flatGRPO_AA": 0.4, "RandomCredit": 0.3, "Vine": 0.2, "LLMJudge": 0.1}
    comparison = with_differences(one_seed, differences)
    headline = findings.answer(comparison, one_seed.arms).headline
    assert headline == (
        "One seed, no verdict: Vine (4 continuations) (+20.0 points, less than for the A/A twin) "
        "and LLMJudge (offline rubric) (+10.0 points, less than for the A/A twin) against flat "
        f"GRPO {AREA}; the A/A twin differs by +40.0 points."
    )
    gates = comparison.protocol.settings.model_copy(
        update={"gates": [Gate(arm="Vine", expect="above")]}
    )
    gated = replace(comparison, protocol=replace(comparison.protocol, settings=gates))
    headline = findings.answer(gated, one_seed.arms).headline
    assert "no verdict: LLMJudge (offline rubric) (+10.0 points, less" in headline
    controls = gated.against_reference.query("method != 'LLMJudge'")
    headline = findings.answer(replace(gated, against_reference=controls), one_seed.arms).headline
    only = "One seed, no verdict: besides flat GRPO, only controls were trained"
    assert headline == f"{only}; the A/A twin differs by +40.0 points."


def test_the_headline_sets_each_arm_beside_what_chance_made(one_seed):
    differences = {"flatGRPO_AA": -0.097, "RandomCredit": 0.01, "Vine": 0.232, "LLMJudge": 0.036}
    comparison = with_differences(one_seed, differences, seeds=5)
    table = comparison.against_reference.set_index("method")
    verdicts = {"Vine": "better", "LLMJudge": "better"}
    table["verdict"] = pd.Series(verdicts).reindex(table.index, fill_value="inconclusive")
    table = table.assign(lower=table["difference"] - 0.03, upper=table["difference"] + 0.03)
    compared = replace(comparison, against_reference=table.reset_index())
    assert findings.answer(compared, one_seed.arms).headline == (
        "Vine (4 continuations) (+23.2 points, +20.2 to +26.2) and LLMJudge (offline rubric) (+3.6 "
        "points, +0.6 to +6.6, less than for the A/A twin) beat flat GRPO "
        f"{AREA}; inconclusive for random credit (+1.0 points, \u22122.0 to +4.0); the A/A twin "
        "differs by \u22129.7 points (\u221212.7 to \u22126.7)."
    )


def test_the_headline_begins_with_the_users_own_arm(one_seed):
    arms = replace(one_seed.arms, mine=frozenset({"LLMJudge"}))
    differences = {"flatGRPO_AA": 0.0, "RandomCredit": 0.01, "Vine": 0.2, "LLMJudge": 0.061}

    def headline(seeds, size=0.061):
        comparison = with_differences(one_seed, differences | {"LLMJudge": size}, seeds)
        table = comparison.against_reference
        if seeds >= 5:
            table = table.assign(lower=table["difference"] - 0.04, upper=table["difference"] + 0.04)
            table.loc[table["method"] == "LLMJudge", "verdict"] = "better" if size > 0 else "worse"
        return findings.answer(replace(comparison, against_reference=table), arms).headline

    label = "Yours, LLMJudge (offline rubric):"
    rest = "LLMJudge (offline rubric) (+6.1 points, +2.1 to +10.1) beats flat GRPO"
    first = f"{label} +6.1 points over flat GRPO (+2.1 to +10.1), better. {rest}"
    assert headline(5).startswith(first)
    lower = f"{label} \u22126.1 points against flat GRPO (\u221210.1 to \u22122.1), worse. "
    assert headline(5, -0.061).startswith(lower)
    few = f"{label} +6.1 points over flat GRPO, no verdict. One seed, no verdict: "
    assert headline(1).startswith(few)
    # The first sentence has the user's arm; if no other arm was under test, its yardsticks follow.
    assert headline(1).count("LLMJudge") == 1 and "no verdict: Vine" in headline(1)
    for other, expected in [
        ("RandomCredit", "One seed, no verdict: random credit (+1.0 points) against flat GRPO"),
        ("LLMJudge", "One seed, no verdict: besides flat GRPO, only your arms were trained."),
    ]:
        comparison = with_differences(one_seed, differences)
        table = comparison.against_reference.query(f"method in ['LLMJudge', '{other}']")
        alone = replace(comparison, against_reference=table)
        assert expected in findings.answer(alone, arms).headline
    arms = replace(arms, mine=frozenset({"flatGRPO"}))
    assert "Yours" not in headline(5)


def test_the_users_arm_without_a_verdict_is_named_once(one_seed):
    arms = replace(one_seed.arms, mine=frozenset({"LLMJudge"}))
    comparison = with_differences(
        one_seed, {"RandomCredit": 0.01, "Vine": 0.2, "LLMJudge": 0.06}, 5
    )
    table = comparison.against_reference
    table.loc[table["method"] == "Vine", "verdict"] = "better"
    text = findings.answer(replace(comparison, against_reference=table), arms).headline
    assert text.startswith("Yours, LLMJudge (offline rubric): +6.0 points over flat GRPO")
    assert text.count("LLMJudge") == 1 and "inconclusive for random credit (" in text
    # Without another finding the second sentence has all arms.
    table = table.assign(verdict="inconclusive")
    text = findings.answer(replace(comparison, against_reference=table), arms).headline
    assert text.count("LLMJudge") == 2 and "Inconclusive: " in text


def test_under_the_headline_stands_what_chance_alone_made(one_seed):
    differences = {"flatGRPO_AA": -0.086, "RandomCredit": 0.3, "Vine": 0.2, "LLMJudge": 0.149}
    comparison = with_differences(one_seed, differences)
    spread = published_spread("bakeoff", ["seeds"], "flat GRPO")
    assert findings.answer(comparison, one_seed.arms, spread=spread).sure == (
        "Flat GRPO again (A/A) differs from flat GRPO only in its random numbers. Over the 5 "
        "published seeds of this study, a single seed's difference "
        "from flat GRPO has a standard deviation of 4.5 points."
    )
    alone = replace(comparison, against_reference=comparison.against_reference.head(0))
    assert "random numbers" not in findings.answer(alone, one_seed.arms).sure
    table = comparison.against_reference.query("method != 'flatGRPO_AA'")
    without = replace(comparison, against_reference=table)
    assert findings.answer(without, one_seed.arms).sure.startswith(
        "With so few seeds, the size of "
    )


def test_a_study_with_other_settings_has_no_published_spread():
    assert published_spread("webshop", [], "flat GRPO").startswith("Over the 3 published seeds of ")
    assert "flat GRPO after the last round has" in published_spread("webshop", [], "flat GRPO")
    assert published_spread("bakeoff", ["training.lr"], "flat GRPO") == ""
    assert published_spread("mine", [], "flat GRPO") == ""


def test_the_published_spread_is_that_of_the_published_tables(project, tmp_path):
    tables, studies = project / "docs/tables", project / "configs/studies"
    assert PUBLISHED.read_text(encoding="utf-8") == publish.spread_text(tables, studies)
    # By hand: paired differences 0.1 and 0.3 of A, 0 and 0 of B; variances 0.02 and 0.
    (tmp_path / "mine").mkdir()
    rows = "11,0.1,0.2,0.1,0.5\n23,0.2,0.5,0.2,0.5\n"
    wide = [line.split(",") for line in rows.split()]
    names = ("flatGRPO", "A", "B", "SFTOnly")
    lines = [f"{n},0.0,{r[0]},{v}" for r in wide for n, v in zip(names, r[1:], strict=True)]
    text = "\n".join(["method,temperature,seed,endpoint", *lines])
    (tmp_path / "mine/seeds.csv").write_text(text, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text("name: mine\n", encoding="utf-8")
    assert json.loads(publish.spread_text(tmp_path, tmp_path)) == {
        "mine": {"seeds": 2, "endpoint": "declared", "deviation": 0.1}
    }


def test_two_seeds_support_no_verdict(two_seeds):
    # A p-value of one degree of freedom that would decide.
    table = two_seeds.comparison.against_untrained.assign(p_holm=0.001, difference=0.2)
    answer = findings.answer(replace(two_seeds.comparison, against_untrained=table), two_seeds.arms)
    assert answer.headline.startswith("Two seeds, no verdict: ")
    # Two runs of an arm say nothing of how many seeds a difference needs.
    assert answer.cautions == [
        "Verdicts require at least five seeds: with fewer, equal arms would be declared different "
        "too often."
    ]
    assert answer.sure == "With so few seeds, the size of chance differences is unknown."
    assert not any("10 points" in text for _, texts in answer.paragraphs for text in texts)
    four = with_differences(two_seeds, {"Progressive": 0.1, "RandomCredit": 0.1}, seeds=4)
    answer = findings.answer(four, two_seeds.arms)
    assert answer.headline.startswith("Four seeds, no verdict: ")
    assert "10 points" in answer.cautions[0]
    five = with_differences(two_seeds, {"Progressive": 0.1, "RandomCredit": 0.1}, seeds=5)
    assert findings.answer(five, two_seeds.arms).cautions == []


def test_no_difference_beyond_what_the_score_allows_is_called_detectable(two_seeds):
    table = two_seeds.comparison.against_reference.assign(verdict="inconclusive", n_seeds=5)

    def text(*effects):
        open_rows = table.assign(minimum_detectable_effect=effects)
        comparison = replace(two_seeds.comparison, against_reference=open_rows)
        return " ".join(findings.answer(comparison, two_seeds.arms).paragraphs[0][1])

    assert "no possible difference would have been detected" in text(float("inf"), float("inf"))
    assert "of about 12.0 to over 100 points would" in text(0.12, float("inf"))
    assert "of about 12.0 to 14.0 points would" in text(0.12, 0.14)


def collapsed(inputs, *runs):
    """The comparison, with runs (method, seed) that win nothing in round 1."""
    table = inputs.comparison.rounds_by_seed.copy()
    for method, seed in runs:
        rows = (table["method"] == method) & (table["seed"] == seed) & (table["round"] == 1)
        table.loc[rows, "success"] = 0.0
    return replace(inputs.comparison, rounds_by_seed=table)


def test_a_collapse_of_the_reference_is_the_first_sentence(two_seeds):
    answer = findings.answer(collapsed(two_seeds, ("flatGRPO", 23)), two_seeds.arms)
    assert answer.headline.startswith(
        "Flat GRPO, the reference, collapsed in 1 of 2 seeds (0.0\u00a0% after round 1 of seed "
        "23), so differences from it mean little. "
    )
    assert answer.cautions[0].startswith("Is the comparison tuned fairly?")
    tested = findings.answer(collapsed(two_seeds, ("Progressive", 23)), two_seeds.arms)
    assert tested.headline.startswith("Progressive collapsed in 1 of 2 seeds")
    assert tested.cautions[0].startswith("Check the sign of its credit")
    assert "collapsed" not in findings.answer(two_seeds.comparison, two_seeds.arms).headline


def test_a_control_may_collapse(two_seeds, tmp_path):
    arm = two_seeds.arms["RandomCredit"]
    controls = {**two_seeds.arms.by_name, "RandomCredit": replace(arm, credit=zero_credit())}
    arms = replace(two_seeds.arms, by_name=controls)
    comparison = collapsed(two_seeds, ("RandomCredit", 11))
    assert "collapsed" in findings.answer(comparison, two_seeds.arms).headline
    assert "collapsed" not in findings.answer(comparison, arms).headline


def zero_credit():
    from hgrpo.credit.kinds import CreditConfig

    return CreditConfig(kind="zero").declared


def test_the_worst_round_is_the_one_that_is_named(two_seeds):
    logs = two_seeds.logs.assign(dead_groups=20, n_groups=32, success_rate=0.1)
    logs.loc[(logs["method"] == "Progressive") & (logs["round"] == 1), "dead_groups"] = 24
    logs.loc[(logs["method"] == "RandomCredit") & (logs["round"] == 2), "dead_groups"] = 30
    (line,) = cautions(replace(two_seeds, logs=logs), scripted_players({}))
    assert "in round 2, 94 % of the groups of random credit" in line
    assert cautions(two_seeds, scripted_players({})) == []


def test_an_sft_policy_far_below_its_expert_is_named(two_seeds):
    methods = two_seeds.comparison.methods.assign(success=0.0, mean_return=0.0)
    inputs = replace(two_seeds, comparison=replace(two_seeds.comparison, methods=methods))
    expert = {"success": {"all": {"trajectories": 9, "at_turn_cap": 0.41, "score": 0.6}}}
    (line,) = cautions(inputs, scripted_players(expert))
    assert "it solves 0.0 % of its tasks; the expert solves 41.0 %" in line


def test_an_expert_that_solves_nothing_is_named_first(two_seeds):
    nothing = {"success": {"all": {"trajectories": 9, "at_turn_cap": 0.0, "score": 0.0}}}
    (line,) = cautions(two_seeds, scripted_players(nothing))
    assert line.startswith("The expert, which SFT imitates, solves 0.0 % ")
