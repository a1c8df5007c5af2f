"""Merging episodes: order-free, and strict about panels."""

import pandas as pd
import pytest
from report_fixtures import write_study

from hgrpo.errors import UserError
from hgrpo.evaluation.merge import COLUMNS, check_episodes, merge_episodes


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_study(
        tmp_path_factory.mktemp("merge"), seeds=(11, 23), rounds=2, n_test=30, n_validation=12
    )


@pytest.fixture
def episodes(study):
    return merge_episodes(study.files("eval/*/*/*/episodes.parquet"))


def test_merge_keeps_every_episode_and_ignores_the_order_of_files(study, episodes):
    paths = study.files("eval/*/*/*/episodes.parquet")
    assert len(episodes) == sum(len(pd.read_parquet(path)) for path in paths)
    pd.testing.assert_frame_equal(episodes, merge_episodes(paths[::-1]))
    assert tuple(episodes.columns) == COLUMNS


def test_columns_that_pandas_wrote_as_an_index_are_columns(tmp_path, episodes):
    path = tmp_path / "episodes.parquet"
    episodes.set_index(["method", "seed"]).to_parquet(path)
    pd.testing.assert_frame_equal(merge_episodes([path]), episodes)


def test_a_file_that_is_not_parquet_is_named(tmp_path):
    path = tmp_path / "episodes.parquet"
    path.write_text("hello", encoding="utf-8")
    with pytest.raises(UserError, match=r"episodes\.parquet: damaged, or not a Parquet"):
        merge_episodes([path])


def test_an_episode_evaluated_twice_is_refused(study):
    path = study.files("eval/flatGRPO/*/*/episodes.parquet")[0]
    with pytest.raises(UserError, match=r"flatGRPO seed 11 round 1 .* evaluated twice"):
        merge_episodes([path, path])


def test_another_content_hash_is_refused(episodes):
    changed = episodes.copy()
    row = changed.query("method == 'Progressive' and seed == 23 and round == 2").index[0]
    changed.loc[row, "content_hash"] = "f" * 64
    with pytest.raises(UserError, match=r"content hash f+ in Progressive seed 23 round 2"):
        check_episodes(changed)


def test_missing_tasks_are_named(episodes):
    chosen = episodes.query(
        "method == 'Progressive' and seed == 23 and round == 2 and panel == 'test'"
    )
    gone = chosen.index[[4, 7]]
    names = chosen.loc[gone, "task_id"].tolist()
    with pytest.raises(UserError) as error:
        check_episodes(episodes.drop(index=gone))
    assert "Progressive seed 23 round 2" in str(error.value)
    assert all(name in str(error.value) for name in names)


def test_a_number_that_is_not_finite_is_named_with_file_and_row(tmp_path, episodes):
    path = tmp_path / "episodes.parquet"
    changed = episodes.copy()
    changed.loc[4, "env_return"] = float("inf")
    changed.to_parquet(path)
    with pytest.raises(UserError, match=r"episodes\.parquet: row 4 task_id .*: env_return is "):
        merge_episodes([path])
