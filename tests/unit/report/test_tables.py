"""Tables of counts and costs against the logs they were summed from."""

import json

import pandas as pd
import pytest
from report_fixtures import inputs_of, write_merged_study

from hgrpo.evaluation.comparison import compare
from hgrpo.report.logs import run_of
from hgrpo.report.names import TABLES, table_names
from hgrpo.report.tables import (
    HEADERS,
    all_tables,
    cost,
    counts,
    logged_extras,
    scripted_players,
)
from hgrpo.trajectories.log_row import as_row


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_merged_study(
        tmp_path_factory.mktemp("tables"),
        methods=("SFTOnly", "flatGRPO", "Progressive"),
        seeds=(11, 23),
        rounds=2,
        n_test=30,
        n_validation=12,
        steps=3,
    )


@pytest.fixture(scope="module")
def inputs(study):
    return inputs_of(study)


def logged(study, method):
    return [
        row
        for path in study.files(f"rl/{method}/*/*/train_log.json")
        for row in json.loads(path.read_bytes())["rows"]
    ]


def test_counts_are_sums_over_seeds_and_rounds(study, inputs):
    table = counts(inputs.comparison, inputs.logs, inputs.arms).set_index("method")
    rows = logged(study, "flatGRPO")
    for name in ("inadmissible", "overlong", "empty", "dead_groups", "truncated"):
        assert table.loc["flatGRPO", f"train_{name}"] == sum(row[name] for row in rows)
    assert table["test_episodes"].tolist() == [60, 60, 60]


def test_one_evaluation_for_every_seed_is_counted_once(inputs):
    arms = inputs.episodes
    mine = arms["method"] == "SFTOnly"
    once = pd.concat([arms[~mine], arms[mine & (arms["seed"] == 11)].assign(seed=0)])
    compared = compare(once, inputs.comparison.protocol)
    row = counts(compared, inputs.logs, inputs.arms).set_index("method").loc["SFTOnly"]
    played = once.query("method == 'SFTOnly' and panel == 'test' and temperature == 0")
    assert row["test_episodes"] == len(played) == 30
    assert row["test_inadmissible"] == played["n_inadmissible"].sum() > 0
    assert row["test_truncated"] == played["truncated"].sum() > 0


def test_cost_is_per_seed(study, inputs):
    table = cost(inputs.logs, inputs.arms).set_index("method")
    rows = logged(study, "Progressive")
    assert table.loc["Progressive", "seconds"] == pytest.approx(
        sum(row["elapsed_s"] for row in rows) / 2
    )
    assert table.loc["Progressive", "trajectories"] == 2 * 3 * 256


def test_a_study_without_extra_play_or_calls_has_no_columns_for_them(inputs):
    assert logged_extras(cost(inputs.logs, inputs.arms)) == {}


def test_the_header_of_an_empty_table_is_that_of_a_full_one(inputs):
    tables = all_tables(inputs, scripted_players({}))
    assert {*tables} == {*TABLES}
    # Pairs have the columns of the other comparisons; this study declares none.
    assert {*HEADERS} - {*tables} == {"pairs"}
    for name, header in HEADERS.items():
        if name == "pairs":
            continue
        assert len(tables[name]), name
        assert [each for each in tables[name].columns if each != "label"] == list(header)


def test_an_empty_table_has_its_header(tmp_path):
    one = write_merged_study(tmp_path / "one", methods=("SFTOnly",), seeds=(11,), rounds=1)
    read = all_tables(inputs_of(one), scripted_players({}))
    assert read["against_reference"].empty and read["other_endpoints"].empty
    assert {"method", "label", "difference"} <= set(read["other_endpoints"].columns)


def measured(study):
    """Write measurements of one arm into the logs; return them, by run and kind of turn."""
    numbers = {}
    for path in study.files("rl/Progressive/*/*/train_log.json"):
        log = json.loads(path.read_bytes())
        metrics = {
            "first_turn": {"pairs": 0, "left_out": 64},
            "any_turn": {"pairs": 64, "left_out": 0, "mutual_information": len(numbers) / 8},
        }
        log["rows"][-1] |= as_row(metrics)
        path.write_text(json.dumps(log), encoding="utf-8")
        numbers[run_of(path)] = metrics
    return numbers


def test_the_table_of_collapse_is_there_if_an_arm_measures_it(tmp_path):
    arms = {"methods": ("SFTOnly", "flatGRPO", "Progressive"), "seeds": (11, 23), "rounds": 2}
    study = write_merged_study(tmp_path, steps=3, n_test=30, n_validation=12, **arms)
    written = measured(study)
    assert "collapse" not in all_tables(inputs_of(study), scripted_players({}))
    assert "collapse" not in table_names(study.config)
    study.config["collapse"] = True
    tables = all_tables(inputs_of(study), scripted_players({}))
    assert list(tables) == table_names(study.config)
    table = tables["collapse"]
    assert len(table) == 2 * 2 * 2 and set(table["method"]) == {"Progressive"}
    assert table["step"].tolist() == [2] * 8
    assert table["turn"].tolist() == ["first_turn", "any_turn"] * 4
    for row in table.to_dict("records"):
        run = row["method"], row["seed"], row["round"]
        expected = written[run][row["turn"]]
        assert {name: row[name] for name in expected} == expected
        # No pair fitted the context, so there is no information to tell.
        assert pd.isna(row["mutual_information"]) == (row["turn"] == "first_turn")
