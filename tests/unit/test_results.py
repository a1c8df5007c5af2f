"""A study's results in pandas: what comes, and what is said of what is not there."""

import pytest
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
    assert {"credit", "advantage"} <= set(loaded.turns("Progressive", 11, 1).columns)
    log = loaded.train_log("flatGRPO", 11)
    assert log["batch"].tolist() == [1, 2, 3, 4] and log["round"].tolist() == [1, 1, 2, 2]
    assert loaded.config["name"] == "fake"


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda r: r.table("method"), "method.csv: no such table; did you mean 'methods'?"),
        (lambda r: r.turns("Progressive", 12, 1), "seed_12/round_1/turns.parquet: no such file"),
        (lambda r: r.train_log("Nobody", 11), "rl/Nobody/seed_11: no finished round"),
        (lambda r: results.load(r.folder / "rl"), "no config.yaml in it"),
    ],
)
def test_what_is_not_there_is_named(loaded, ask, said):
    with pytest.raises(UserError) as refused:
        ask(loaded)
    assert said in str(refused.value)


def test_damaged_files_are_named(tmp_path):
    (tmp_path / "config.yaml").write_text("name: x\n")
    home = tmp_path / "rl/flatGRPO/seed_11/round_1"
    home.mkdir(parents=True)
    for name in ("turns.parquet", "train_log.json"):
        (home / name).write_text("{")
    study = results.load(tmp_path)
    with pytest.raises(UserError, match=r"turns.parquet: damaged"):
        study.turns("flatGRPO", 11, 1)
    with pytest.raises(UserError, match=r"train_log.json: not a train log"):
        study.train_log("flatGRPO", 11)
