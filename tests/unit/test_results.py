"""A study's results in pandas, and messages about results that are not there."""

import json
import re
import shutil

import pandas as pd
import pytest
from latex_width import column_inches
from report_fixtures import build_report, write_study

from hgrpo import results
from hgrpo.errors import UserError


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    study = write_study(tmp_path_factory.mktemp("loaded"), seeds=(11,), rounds=2, steps=2)
    build_report(study)
    return results.load(study.root)


def test_results_come_as_tables(loaded):
    assert {"methods", "rounds", "cost"} <= set(loaded.tables)
    assert set(loaded.table("methods")["method"]) >= {"flatGRPO", "Progressive"}
    assert loaded.episodes()["method"].nunique() == 4
    # Only the supervised policy was played at other temperatures; its round is 0.
    every = loaded.episodes(panel=None, round=None, temperature=None)
    assert set(every["round"]) == {0, 1, 2} and every["temperature"].nunique() == 5
    chosen = loaded.episodes(panel="validation", round=1)
    assert set(chosen["panel"]) == {"validation"} and set(chosen["round"]) == {1}
    assert {"credit", "advantage"} <= set(loaded.turns("Progressive", 11, 1).columns)
    log = loaded.train_log("flatGRPO", 11)
    assert log["batch"].tolist() == [1, 2, 3, 4] and log["round"].tolist() == [1, 1, 2, 2]
    assert loaded.config["name"] == "fake"


@pytest.fixture(scope="module")
def printed(loaded, project):
    """What the example of docs/how_to.md prints, of this study."""
    page = (project / "docs/how_to.md").read_text(encoding="utf-8").split("## Results in pandas")[1]
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
    code = code.replace("results/bakeoff", str(loaded.folder)).replace("round=3", "round=1")
    values = []
    exec(code, {"print": values.append})
    return values


def test_the_example_of_how_to_prints_the_reports_numbers(loaded, printed):
    table = loaded.table("task_types").pivot(index="method", columns="task_type", values="success")
    pd.testing.assert_frame_equal(printed[2], table)
    turns = loaded.turns("Progressive", 11, 1)
    assert printed[3]["credit"].iloc[0] == turns["credit"].max()


def test_the_latex_of_how_to_compiles_and_fits_a_column(printed):
    text = printed[4]
    assert text.startswith(r"\begin{tabular}{@{}lrrr@{}}")
    assert "Progressive & " in text and not re.search(r"(?<!\\)[_%#]", text)
    assert column_inches(text) < 3.4


def test_units_are_the_reports(loaded):
    fractions = loaded.table("against_reference").set_index("method").loc["Progressive"]
    html = (loaded.folder / "report/report.html").read_text(encoding="utf-8")
    points = loaded.table("against_reference", percent=True).set_index("method")
    assert points.loc["Progressive", "difference"] == pytest.approx(100 * fractions["difference"])
    text = loaded.latex("against_reference", ["label", "difference", "endpoint", "n_tasks"])
    number = f"{abs(100 * fractions['difference']):.1f}"
    assert f"{number} & {100 * fractions['endpoint']:.1f} & 120" in text and number in html
    assert "Progressive & 0.00" not in text


def test_what_is_no_rate_keeps_its_unit(tmp_path):
    tables = tmp_path / "report/tables"
    tables.mkdir(parents=True)
    (tmp_path / "config.yaml").write_text("name: x\n", encoding="utf-8")
    (tables / "thresholds.csv").write_text(
        "threshold,lower,median\n0.45,900.0,1024.0\n", encoding="utf-8"
    )
    (tables / "endpoints.csv").write_text(
        "score,mean,p_value,steps\nreturn,0.171,0.034,7\n", encoding="utf-8"
    )
    study = results.load(tmp_path)
    rows = study.latex("thresholds", ["threshold", "lower"]).splitlines()
    assert rows[4] == r"45.0 & 900.000 \\"
    rows = study.latex("endpoints", ["score", "mean", "p_value", "steps"]).splitlines()
    assert rows[4] == r"return & 17.1 & 0.034 & 7 \\"
    assert study.table("endpoints")["mean"].tolist() == [0.171]


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda r: r.episodes(panel="train"), "no episodes of panel train, only of test, validati"),
        (
            lambda r: r.latex("methods", ["sucess"]),
            "methods: the table has no column sucess; did you mean 'succ",
        ),
        (lambda r: r.table("method"), "method.csv: no such table; did you mean 'methods'?"),
        (
            lambda r: r.turns("Progressive", 12, 1),
            "rl/Progressive: the arm has no seed 12, only 11",
        ),
        (lambda r: r.train_log("SFTOnly", 11), "rl/SFTOnly: there is no such trained arm; known: "),
        (lambda r: results.load(r.folder / "rl"), "contains no config.yaml"),
    ],
)
def test_what_is_not_there_is_named(loaded, read, message):
    with pytest.raises(UserError) as refused:
        read(loaded)
    assert message in str(refused.value)


def test_results_of_an_earlier_run_of_the_study_are_refused(tmp_path):
    arms = {name: {"name": name, "alpha": 0.5, "training": {"lr": 2}} for name in ("Mine", "Other")}
    env = {"turn_cap": 8, "expert": {"trajectories": 9}}
    config = {"rounds": 2, "methods": arms, "env": env}
    (tmp_path / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    rounds = [("Mine", n, 0.5, 2) for n in (1, 2, 3)]
    rounds += [("Other", 1, 0.5, 2), ("Other", 2, 0.1, 1), ("Gone", 1, 0.5, 2)]
    for arm, number, alpha, lr in rounds:
        home = tmp_path / f"rl/{arm}/seed_11/round_{number}"
        home.mkdir(parents=True)
        method = {"name": arm, "alpha": alpha, "training": {}}
        game = env | {"expert": {"trajectories": 20_000}}
        settings = {"method": method, "training": {"lr": lr}, "env": game}
        log = {"rows": [{"step": 0}], "config": settings}
        (home / "train_log.json").write_text(json.dumps(log), encoding="utf-8")
    study = results.load(tmp_path)
    # The third round is left from a longer run.
    assert study.train_log("Mine", 11)["round"].tolist() == [1, 2]
    with pytest.raises(UserError, match="no round 3, only 1, 2"):
        study.turns("Mine", 11, 3)
    for read in (lambda: study.train_log("Other", 11), lambda: study.turns("Other", 11, 2)):
        with pytest.raises(
            UserError, match="round_2/.*: alpha, training: the round's settings differ"
        ):
            read()
    for name, value in (("env", {**env, "turn_cap": 9}), ("rounds", 1)):
        changed = json.dumps(config | {name: value})
        (tmp_path / "config.yaml").write_text(changed, encoding="utf-8")
        with pytest.raises(UserError, match="json: env: the round's settings|no round 2, only 1"):
            results.load(tmp_path).turns("Mine", 11, 2)
    with pytest.raises(UserError, match="there is no such trained arm"):
        study.train_log("Gone", 11)


def test_tables_of_another_config_are_refused(loaded, tmp_path):
    shutil.copytree(loaded.folder, tmp_path / "fake")
    config = tmp_path / "fake/config.yaml"
    text = config.read_text(encoding="utf-8")
    # Where and when a study was resolved does not matter.
    config.write_text(text.split("provenance:")[0], encoding="utf-8")
    assert len(results.load(tmp_path / "fake").table("methods"))
    config.write_text(text.replace("rounds: 2", "rounds: 1"), encoding="utf-8")
    study = results.load(tmp_path / "fake")
    for read in (lambda: study.table("methods"), study.episodes):
        with pytest.raises(UserError, match="comparison.json: config.yaml has changed since"):
            read()
