"""The page and its command lines: self-contained, honest words, one-line errors."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import urlparse

import pandas as pd
import pytest
from report_fixtures import build_report, run_cli, shipped, write_study

from hgrpo.evaluation.comparison import compare
from hgrpo.evaluation.merge import merge_episodes
from hgrpo.evaluation.played_endpoints import Protocol
from hgrpo.evaluation.settings import StatisticsConfig
from hgrpo.report import findings, words
from hgrpo.report.arms import read_arms
from hgrpo.report.page_rows import provenance_rows
from hgrpo.report.svg import inline

AREA = "in mean success over rounds 1 to 2"
FIRST = "Progressive (+3.6 points, +1.0 to +6.0)"
SECOND = "random credit (\u22122.0 points, \u22125.0 to +1.0)"
PANELS = {"n_test": 60, "n_validation": 24}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    root = tmp_path_factory.mktemp("page")
    return write_study(root, seeds=(11, 23), rounds=2, steps=3, **PANELS)


@pytest.fixture(scope="module")
def page(study):
    return build_report(study)


@pytest.fixture(scope="module")
def html(page):
    return page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def paid_in_part(tmp_path_factory):
    """The page's folder of a study whose failures pay a quarter."""
    root = tmp_path_factory.mktemp("parts")
    study = write_study(root, seeds=(11, 23), rounds=2, steps=3, **PANELS)
    for path in study.files("eval/*/*/*/episodes.parquet"):
        frame = pd.read_parquet(path)
        frame["env_return"] = 0.25 + 0.75 * frame["success"]
        frame.to_parquet(path, index=False)
    return build_report(study).parent


def test_scores_stand_beside_successes_where_parts_are_paid(paid_in_part):
    html = (paid_in_part / "report.html").read_text(encoding="utf-8")
    levels = pd.read_csv(paid_in_part / "tables/endpoints.csv")
    levels = levels.set_index(["endpoint", "score", "method", "temperature"])
    row = levels.loc[("area", "return", "Progressive", 0.0)]
    success = levels.loc[("area", "success", "Progressive", 0.0)]
    assert success["declared"] and not row["declared"]
    assert row["mean"] == pytest.approx(0.25 + 0.75 * success["mean"])
    lower, upper = (f"{100 * row[end]:.1f}" for end in ("lower", "upper"))
    assert f">{100 * row['mean']:.1f}<small>{lower} to {upper}</small>" in html
    first = pd.read_csv(paid_in_part / "tables/against_reference.csv").iloc[0]
    others = pd.read_csv(paid_in_part / "tables/other_endpoints.csv")
    others = others.query(f"baseline == 'flatGRPO' and method == '{first['method']}'")
    against = others.query("endpoint == 'area' and score == 'return'").iloc[0]
    assert against["difference"] == pytest.approx(0.75 * first["difference"])
    for other in others.to_dict("records"):
        ends = [words.points(other[end]) for end in ("difference", "lower", "upper")]
        assert f"{ends[0]} ({ends[1]} to {ends[2]})</td>" in html
    assert "Last round, score" in html
    svg = (paid_in_part / "figures/learning_curves.svg").read_text(encoding="utf-8")
    assert "greedy test score" in svg and "greedy test success" in svg


@pytest.fixture(scope="module")
def declared(tmp_path_factory):
    """The page of a study with gates, a pair, an overridden endpoint and a stopped run."""
    root = tmp_path_factory.mktemp("declared")
    study = write_study(root, seeds=(11, 23, 31, 47, 59), rounds=2, steps=3, **PANELS)
    study.config["gates"] = [
        {"arm": "Progressive", "expect": "above", "points": 99},
        {"arm": "RandomCredit", "expect": "equivalent", "points": 99},
    ]
    study.config["pairs"] = [{"arm": "RandomCredit", "against": "Progressive"}]
    study.config["overridden"] = {"evaluation.endpoint": "area"}
    for path in study.files("rl/Progressive/seed_11/*/train_log.json"):
        log = json.loads(path.read_bytes())
        log["ended"] = {"status": "stopped", "rule": "empty_steps", "round": 1, "step": 2}
        if "round_2" in str(path):
            log["rows"] = []  # a round that was not played
        path.write_text(json.dumps(log), encoding="utf-8")
    return build_report(study)


def test_the_page_opens_with_the_gates(declared):
    html = declared.read_text(encoding="utf-8")
    assert html.index('id="gates"') < html.index('id="results"')
    assert "Gates failed: Progressive (1 of 2)." in html and "above 0, estimate 99 or more" in html
    findings = (declared.parent / "findings.txt").read_text(encoding="utf-8")
    assert findings.startswith("Gates failed: Progressive (1 of 2).")
    table = pd.read_csv(declared.parent / "tables/gates.csv")
    assert table["result"].tolist() == ["failed", "passed"]
    assert table["power"].tolist() == pytest.approx([0, 1])
    assert "passes in 0\u00a0% at +10" in html
    against = pd.read_csv(declared.parent / "tables/against_reference.csv").set_index("method")
    assert table["lower"].tolist() == against.loc[table["method"], "lower"].tolist()


def test_the_page_has_the_declared_pairs_and_the_chosen_endpoint(declared, html):
    row = pd.read_csv(declared.parent / "tables/pairs.csv").iloc[0]
    assert (row["method"], row["baseline"]) == ("RandomCredit", "Progressive")
    page = declared.read_text(encoding="utf-8")
    assert ", further pairs of arms: 1 comparison, paired" in page
    cells = page[page.index("random credit, against Progressive</th>") :]
    assert f">{words.points(row['difference'])}</td>" in cells[:200]
    assert "It was set on the command line" in page and "It was set on the command line" not in html


def test_a_stopped_run_is_a_failed_one_and_says_so(declared):
    html = declared.read_text(encoding="utf-8")
    assert "<b>stopped in 1 of 5 runs</b>" in html
    assert "<td>stopped</td><td><code>empty_steps</code></td>" in html
    assert "A cross marks a run ended by a rule" in html
    (row,) = pd.read_csv(declared.parent / "tables/stops.csv").to_dict("records")
    run = {"method": "Progressive", "seed": 11, "status": "stopped", "rule": "empty_steps"}
    assert row | run | {"round": 1, "step": 2} == row


def test_two_seeds_have_no_marks(html, page):
    assert "Two seeds, no verdict: " in html and "Significant" not in html
    for mark in ('class="chip better"', "Filled marks", 'aria-label="Seeds required"'):
        assert mark not in html
    table = pd.read_csv(page.parent / "tables/against_sft.csv")
    assert set(table["verdict"]) == {"too few seeds"}
    assert table[["p_value", "p_holm"]].isna().all(axis=None)
    # Success is all that pays, so there are no scores.
    assert 'data-label="score"' not in html and "Area, score" not in html


def test_credit_before_a_first_fit_is_called_that(tmp_path_factory, html):
    root = tmp_path_factory.mktemp("fits")
    arms = ("SFTOnly", "flatGRPO", "TurnRDV2")
    settings = {name: shipped("bakeoff")[name] for name in arms}
    remark = "No model has been fitted in the first round, so turns get equal shares of the return."
    assert remark not in html
    study = write_study(root, seeds=(11,), rounds=2, steps=3, settings=settings, **PANELS)
    page = build_report(study)
    text = page.read_text(encoding="utf-8")
    assert remark in text
    # The fitted credit, with its own turns, stands below.
    table = pd.read_csv(page.parent / "figures/credit_last_round.csv")
    assert table["round"].unique().tolist() == [2] and len(table) == 16
    fitted = text[text.index("<h3>Credit after the last fit</h3>") :]
    assert "The assigner of TurnRD v2 is fitted between rounds" in fitted and "round 2" in fitted
    for credit in table["credit"]:
        assert f">{words.points(credit / 100, 2)}</td>" in fitted
    assert ">progress</th>" in fitted


class Tags(HTMLParser):
    """Collects every tag with its attributes, and complains of tags left open."""

    VOID = {"meta", "link", "br", "img", "input", "hr"}

    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def tags(html):
    parser = Tags()
    parser.feed(html)
    assert parser.open == []
    return parser.tags


def test_the_page_needs_nothing_from_outside(html, tags):
    for tag, attributes in tags:
        assert tag not in {"script", "iframe", "object", "embed", "img"}
        for name in ("src", "href", "xlink:href"):
            address = attributes.get(name) or "#"
            assert address.startswith(("#", "data:")), (tag, address)
    assert "@import" not in html
    assert not [part for part in re.findall(r"url\(([^)]*)\)", html) if urlparse(part).scheme]


def test_ids_are_unique_and_references_point_somewhere(tags, html):
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [
        a[name][1:]
        for _, a in tags
        for name in ("href", "xlink:href")
        if a.get(name, "")[:1] == "#"
    ]
    targets += re.findall(r"url\(#([^)]+)\)", html)
    assert targets and set(targets) <= set(ids)


def test_the_page_says_its_language_and_names_every_figure(tags):
    assert ("html", {"lang": "en"}) in tags
    plots = [a for tag, a in tags if tag == "svg" and a.get("class") == "plot"]
    assert len(plots) > 6
    ids = {a.get("id") for _, a in tags}
    assert all(a["role"] == "img" and a["aria-labelledby"] in ids for a in plots)
    tables = [a for tag, a in tags if tag == "table"]
    captions = [a for tag, a in tags if tag == "caption"]
    assert len(captions) == len(tables)


def test_observations_are_escaped(html):
    assert "&lt;plate 1&gt; &amp; a knife 2." in html
    assert "<plate 1>" not in html


def test_scripted_players_left_out_and_provenance_are_on_the_page(html, page):
    rows = re.findall(r'class="scripted">(.*?)</tr>', html, re.DOTALL)
    assert "the expert that was imitated" in rows[0] and "41.0" in rows[0]
    assert "90 trajectories on training tasks" in rows[0]
    assert "who knows the house" in rows[1] and "93.0" in rows[1]
    assert "20 trajectories on test tasks" in rows[1]
    scripted = pd.read_csv(page.parent / "tables/scripted.csv")
    assert scripted["success"].tolist() == [0.41, 0.93]
    assert "no walkthrough 3" in html
    assert "0f3c9a1b22d4e857" in html
    assert "rollouts_per_task: 8" in html


def test_writing_the_page_twice_gives_the_same_bytes(study, page, html):
    build_report(study, ("report",))
    assert page.read_text(encoding="utf-8") == html


def test_manifest_and_tables_lie_beside_the_page(page):
    manifest = json.loads((page.parent / "methods_comparison.json").read_bytes())
    assert set(manifest) == {"SFTOnly", "flatGRPO", "Progressive", "RandomCredit"}
    methods = pd.read_csv(page.parent / "tables/methods.csv")
    row = methods.query("method == 'flatGRPO'").iloc[0]
    assert manifest["flatGRPO"]["last_pct_success"] == pytest.approx(row["success"])


def test_a_user_error_is_one_line_and_leaves_nothing(tmp_path):
    out = tmp_path / "episodes.parquet"
    done = run_cli("merge", "--config", "{}", "--out", out, "--episodes", tmp_path / "none.parquet")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "none.parquet: no such file" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_report_does_not_load_torch():
    code = (
        "import sys, hgrpo.cli.run_stage;"
        "from hgrpo.stages import merge, figures, report;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture(scope="module")
def compared(study):
    episodes = merge_episodes(study.files("eval/*/*/*/episodes.parquet"))
    return compare(episodes, protocol_of(study)), read_arms(study.config)


def protocol_of(study):
    return Protocol(
        methods=list(study.config["methods"]),
        settings=StatisticsConfig(),
    )


def with_verdicts(comparison, verdicts):
    table = comparison.against_reference.assign(verdict=verdicts, n_seeds=5)
    table = table.assign(difference=[0.036, -0.02], lower=[0.01, -0.05], upper=[0.06, 0.01])
    return replace(comparison, against_reference=table)


@pytest.mark.parametrize(
    ("verdicts", "headline"),
    [
        (
            ["better", "worse"],
            f"{FIRST} beats flat GRPO {AREA}; {SECOND} does worse than flat GRPO.",
        ),
        (
            ["better", "better"],
            f"{FIRST} and {SECOND} beat flat GRPO {AREA}.",
        ),
        (
            ["better", "inconclusive"],
            f"{FIRST} beats flat GRPO {AREA}; inconclusive for {SECOND}.",
        ),
        (
            ["inconclusive", "inconclusive"],
            f"Inconclusive: {FIRST} and {SECOND} cannot be distinguished from flat GRPO {AREA}.",
        ),
    ],
)
def test_the_headline_says_what_the_verdicts_say(compared, verdicts, headline):
    comparison, arms = compared
    assert findings.answer(with_verdicts(comparison, verdicts), arms).headline == headline


def test_an_interval_that_only_holms_correction_takes_back_is_explained(compared):
    comparison, arms = compared
    table = comparison.against_reference.assign(
        lower=0.01, verdict=["inconclusive", "inconclusive"], n_seeds=5
    )
    answer = findings.answer(replace(comparison, against_reference=table), arms)
    assert any("Holm's correction" in text for text in answer.paragraphs[0][1])


def test_one_seed_is_called_one_seed(study):
    episodes = merge_episodes(study.files("eval/*/seed_11/*/episodes.parquet"))
    comparison = compare(episodes, protocol_of(study))
    assert set(comparison.against_reference["verdict"]) == {"one seed"}
    assert set(comparison.against_untrained["verdict"]) == {"one seed"}
    answer = findings.answer(comparison, read_arms(study.config))
    assert answer.headline.startswith("One seed, no verdict: Progressive (+")
    assert "highest" not in answer.headline and "chance" not in answer.headline
    assert answer.headline.endswith(f" points) against flat GRPO {AREA}.")
    text = " ".join(text for _, texts in answer.paragraphs for text in texts)
    assert "better" not in text and "80 % power" not in text
    limits = answer.paragraphs[-1][1][0]
    assert limits.startswith(
        "Only one seed was trained. The spread between seeds is unknown, so there are "
    )
    assert limits.endswith("no estimate of the required number of seeds.")
    assert comparison.against_reference["minimum_detectable_effect"].isna().all()


def test_a_shuffled_control_is_pointed_out(study, compared):
    comparison, _ = compared
    config = json.loads(json.dumps(study.config))
    config["methods"]["RandomCredit"]["credit"] = {"kind": "random"}
    limits = findings.answer(comparison, read_arms(config)).paragraphs[-1][1]
    assert any(text.startswith("Random credit is a control") for text in limits)


def test_the_first_table_is_sorted_and_marks_what_was_not_trained(html, page):
    first = html[html.index('<table class="results"') : html.index("</table>")]
    rows = re.findall(r'<tr role="row" class="(\w+)">(.*?)</tr>', first, re.DOTALL)
    shares = [float(re.search(r"<strong>([\d.]+)", row)[1]) for kind, row in rows[:-2]]
    assert shares == sorted(shares, reverse=True) and len(shares) >= 4
    kinds = [kind for kind, _ in rows]
    assert kinds[-2:] == ["scripted", "scripted"] and kinds.count("reference") == 1
    assert all(("not trained" in row) == (kind == "untrained") for kind, row in rows)
    assert "untrained" in kinds


def test_the_page_says_when_how_long_and_by_which_command(html, study):
    facts = dict(re.findall(r"<dt>([^<]+)</dt><dd>(?:<code>)?([^<]+)<", html))
    assert facts["Seeds"] == "11, 23"
    assert facts["Training ended"] == "2026-02-07"  # the latest log, not the first
    logs = [json.loads(path.read_bytes()) for path in study.files("rl/*/*/*/train_log.json")]
    seconds = sum(row["elapsed_s"] for log in logs for row in log["rows"])
    assert facts["Total training time of all runs"] == words.duration(seconds)
    assert facts["Command"] == "make bakeoff STUDY=fake"
    assert "make bakeoff STUDY=fake SEEDS=&#34;11 23 31 47 59&#34;" in html


def test_inline_svg_follows_the_theme_and_keeps_ids_apart():
    text = (
        '<?xml version="1.0"?><svg width="9pt" viewBox="0 0 9 9"><metadata>x</metadata>'
        '<defs><style type="text/css">*{fill: red}</style></defs><path id="a" '
        'style="stroke: #23272d"/><use href="#a" clip-path="url(#b)"/></svg>'
    )
    result = str(inline(text, "forest", 'said "so"'))
    assert result.startswith("<svg class=") and "metadata" not in result and "red" not in result
    assert 'id="forest-a"' in result and 'href="#forest-a"' in result
    assert "url(#forest-b)" in result and "var(--ink)" in result
    assert "said &quot;so&quot;" in result


def test_provenance_lists_every_distinct_value():
    rows = provenance_rows(
        {
            "rl rounds": [
                {"code": "a", "packages": {"torch": "1"}, "hardware": {"cores": 2, "gpu": None}},
                {"code": "b", "packages": {"torch": "1"}},
            ],
            "study": [{"provenance": {"python": "3.11"}}],
            "empty": [{}],
        }
    )
    assert rows == [
        ("rl rounds", [("packages", ["torch 1"]), ("code", ["a", "b"]), ("hardware", ["cores 2"])]),
        ("study", [("python", ["3.11"])]),
    ]
