"""Published numbers can be recomputed, and a change of what they rest on is found."""

import re
import shutil

import check_published
import evidence
import numpy as np
import older_pages
import pandas as pd
import pytest

from hgrpo.evaluation import statistics


@pytest.fixture
def copied(project, tmp_path):
    """Function: a copy of a study's published tables."""

    def copy(study):
        return shutil.copytree(project / "docs/tables" / study, tmp_path / study)

    return copy


def test_every_published_table_is_what_its_files_give(project):
    checks = {
        str(path.parent.relative_to(project / "docs/tables")): check_published.check(
            path.parent, {}
        )
        for path in (project / "docs/tables").glob("**/seeds.csv")
    }
    assert len(checks) >= 18
    assert {study: wrong for study, (wrong, _) in checks.items() if wrong} == {}
    assert checks["first_look/bfloat16"][1] == [
        "dose_response.csv"
    ]  # a figure's data, which takes drawing


def test_a_flipped_game_and_a_changed_dead_group_are_found(copied):
    folder = copied("first_look/bfloat16")
    games = pd.read_parquet(folder / evidence.GAMES)
    trained = games.index[games["method"] == "Oracle"][700]
    sampled = games["temperature"].eq(0.3) & games["panel"].eq("validation")
    flipped = [trained, games.index[sampled][5]]
    games.loc[flipped, "success"] = ~games.loc[flipped, "success"]
    games.to_parquet(folder / evidence.GAMES)
    logs = pd.read_csv(folder / evidence.TRAINING)
    assert len(logs) == 4 * 5 * 3 * 4  # arms, seeds, rounds, steps
    assert logs["dead_groups"].between(0, logs["n_groups"]).all()
    logs.loc[3, "dead_groups"] += 1
    evidence.write_compressed(logs, folder / evidence.TRAINING)
    wrong, _ = check_published.check(folder, {})
    one_run = [each for each in wrong if "rounds_by_seed.csv: success, row" in each]
    assert len(one_run) == 1 and "more" not in one_run[0]
    for table in ("rounds.csv: success", "sft_temperatures.csv: success", "counts.csv: train_dead"):
        assert any(table in each for each in wrong), table


def test_tuning_is_published_and_gives_the_table_in_the_studys_file(project):
    runs = pd.read_csv(project / "docs/tables/first_look" / evidence.TUNING)
    runs = runs[(runs["round"] > 0) & (runs["training.max_grad_norm"] > 1)]
    runs["arm"] = runs["method"].str.extract(r"([A-Za-z]+)\d")[0]
    by_seed = runs.groupby(["training.lr", "arm", "train_dtype", "seed"])["success"].mean()
    means = 100 * by_seed.groupby(level=[0, 1, 2]).agg(["mean", "std"])
    text = (project / "configs/studies/first_look.yaml").read_text(encoding="utf-8")
    lines = re.findall(r"^#   (\d\.\de-3) (.*\))$", text, re.MULTILINE)
    columns = [
        (arm, dtype)
        for arm in ("flatGRPO", "Oracle", "OracleShuffled")
        for dtype in ("auto", "float32")
    ]
    assert len(lines) == 4
    for rate, line in lines:
        written = re.findall(r"([\d.]+) \( ?([\d.]+)\)", line)
        rows = [means.loc[(float(rate), *column)] for column in columns]
        assert written == [(f"{row['mean']:.1f}", f"{row['std']:.1f}") for row in rows]


def test_an_older_page_is_judged_as_its_games_would_be(copied):
    folder = copied("first_look/bfloat16")
    inputs, _ = evidence.published(folder)
    comparison = inputs.comparison
    assert comparison.protocol.settings.pool_twin is False
    expected = comparison.against_reference
    flat = comparison.scores["flatGRPO"]
    # What an older page has: the standard error of its time, over seeds and games.
    errors = [
        statistics.two_level_variance(statistics.with_pseudo_tasks(comparison.scores[name] - flat))[
            0
        ]
        for name in expected["method"]
    ]
    older = expected.drop(columns="repeats_alike").assign(standard_error=errors)
    runs = older_pages.read_runs(folder)
    family = older_pages.family(older, older_pages.of_games(older, runs), runs)
    assert check_published.differences(family[list(expected)], expected) == []


def test_a_changed_seed_or_verdict_of_an_older_page_is_found(copied):
    folder = copied("bakeoff")
    assert check_published.check(folder, {})[0] == []
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    table = older_pages.read(folder, "against_reference")
    older_pages.write(table.replace("inconclusive", "better"), folder, "against_reference")
    wrong, _ = check_published.check(folder, {})
    assert any("verdict, row 1" in each for each in wrong)
    folder.joinpath("against_reference.csv").write_bytes(before["against_reference.csv"])
    seeds = older_pages.read(folder, "seeds")
    trained = seeds["method"] == "Vine"
    older_pages.write(seeds.assign(endpoint=seeds["endpoint"] + 0.001 * trained), folder, "seeds")
    wrong, rest = check_published.check(folder, {})
    assert any("against_reference.csv: difference" in each for each in wrong)
    assert "thresholds.csv" in rest


def test_three_seeds_lose_their_verdicts_and_keep_their_intervals(project):
    folder = project / "docs/tables/webshop"
    table = older_pages.read(folder, "against_reference")
    assert set(table["verdict"]) == {"too few seeds"}
    assert table[["p_value", "p_holm"]].isna().all(axis=None)
    runs = older_pages.read_runs(folder)
    values = (runs.scores["TurnRDV1", 0.0] - runs.scores["flatGRPO", 0.0]) * 500 / 502
    row = table.set_index("method").loc["TurnRDV1"]
    variance = values.var(ddof=1) / 3 + row["of_games"]
    assert np.isclose(row["standard_error"] ** 2, variance)
    assert row["verdict_before"] == "worse"
