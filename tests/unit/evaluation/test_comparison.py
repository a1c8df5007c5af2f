"""The comparison protocol on hand-made episodes, where every number is known."""

import pandas as pd
import pytest
from report_fixtures import write_study

from hgrpo.errors import UserError
from hgrpo.evaluation.comparison import Protocol, compare
from hgrpo.evaluation.merge import merge_episodes

PROTOCOL = Protocol(methods=("SFTOnly", "flatGRPO", "New"), replicates=200)


def episodes(method, seed, number, panel, temperature, wins, tasks=None, hash_prefix="h"):
    """Evaluation in which the tasks listed in `wins` (of 20) are solved."""
    tasks = tasks or range(20)
    return pd.DataFrame(
        {
            "method": method,
            "seed": seed,
            "round": number,
            "panel": panel,
            "temperature": float(temperature),
            "task_id": [f"{panel}{i:02d}" for i in tasks],
            "content_hash": [f"{hash_prefix}{panel}{i}" for i in tasks],
            "task_type": ["even" if i % 2 == 0 else "odd" for i in tasks],
            "success": [i in wins for i in tasks],
            "env_return": [float(i in wins) for i in tasks],
            "final_progress": 0.5,
            "n_turns": 10,
            "n_inadmissible": 1,
            "n_overlong": 0,
            "n_empty": 0,
            "truncated": [i not in wins for i in tasks],
            "n_action_tokens": 50,
        }
    )


def small_study(seeds=(1, 2)):
    """SFT solves 0-7 greedy; flat 0-9 at the last round; New 0-17; best flat round is the first."""
    parts = []
    for seed in seeds:
        for t, validation, test in ((0.0, 6, 8), (0.3, 9, 7), (0.7, 9, 12), (1.0, 4, 15)):
            parts.append(episodes("SFTOnly", seed, 0, "validation", t, range(validation)))
            parts.append(episodes("SFTOnly", seed, 0, "test", t, range(test)))
        for number, flat, new in ((1, 14, 10), (2, 10, 18)):
            for panel in ("validation", "test"):
                parts.append(episodes("flatGRPO", seed, number, panel, 0, range(flat)))
                parts.append(episodes("New", seed, number, panel, 0, range(new)))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def comparison():
    return compare(small_study(), PROTOCOL)


def test_sft_temperature_is_chosen_on_validation_with_ties_to_the_lower(comparison):
    # 0.3 and 0.7 tie on validation; 1.0 is best on test and must not matter.
    assert comparison.best_temperature == 0.3
    row = comparison.against_untrained.set_index("method").loc["New"]
    assert row["baseline_temperature"] == 0.3
    assert row["baseline_success"] == pytest.approx(7 / 20)
    assert row["difference"] == pytest.approx(11 / 20)


def test_the_last_round_counts_not_the_best(comparison):
    success = comparison.methods.set_index(["method", "temperature"])["success"]
    assert success["flatGRPO", 0.0] == pytest.approx(10 / 20)
    best = comparison.best_rounds.set_index("method").loc["flatGRPO"]
    assert (best["best_round"], best["best_success"]) == (1, pytest.approx(14 / 20))
    assert best["last_success"] == pytest.approx(10 / 20)


def test_paired_difference_mcnemar_and_verdict(comparison):
    row = comparison.against_reference.set_index("method").loc["New"]
    assert row["difference"] == pytest.approx(8 / 20)
    assert row["lower"] > 0 and row["verdict"] == "better"
    assert list(comparison.against_reference["method"]) == ["New"]
    tests = comparison.mcnemar.query("baseline == 'flatGRPO'")
    assert tests["only_method"].tolist() == [8, 8]
    assert tests["p_value"].tolist() == pytest.approx([2 / 2**8] * 2)


def test_every_trained_arm_meets_the_untrained_one(comparison):
    assert comparison.against_untrained["method"].tolist() == ["flatGRPO", "New"]
    # Holm over two comparisons: the larger p-value is at most doubled, never lowered.
    table = comparison.against_untrained
    assert (table["p_holm"] >= table["p_value"]).all()


def test_counts_and_means_of_the_main_table(comparison):
    row = comparison.methods.set_index(["method", "temperature"]).loc[("New", 0.0)]
    assert row["inadmissible_share"] == pytest.approx(0.1)
    assert row["mean_turns"] == 10
    assert row["truncated_share"] == pytest.approx(2 / 20)
    assert row["validation_success"] == pytest.approx(18 / 20)


def test_task_types_by_hand(comparison):
    types = comparison.task_types.set_index(["method", "task_type"])["success"]
    assert types["flatGRPO", "even"] == pytest.approx(5 / 10)
    assert types["New", "odd"] == pytest.approx(9 / 10)


def test_a_return_above_0_is_success_to_the_reference_alone():
    frame = small_study()
    failed = (frame["method"] == "New") & ~frame["success"]
    frame.loc[failed, "env_return"] = 0.5
    comparison = compare(frame, PROTOCOL)
    row = comparison.methods.set_index(["method", "temperature"]).loc[("New", 0.0)]
    assert row["success"] == pytest.approx(0.9)
    assert row["paid_share"] == 1
    assert row["mean_return"] == pytest.approx(0.9 + 0.1 * 0.5)
    seeds = comparison.seeds.query("method == 'New'")
    assert (seeds["mean_return"] - seeds["success"]).tolist() == pytest.approx([0.05] * len(seeds))
    types = comparison.task_types.query("method == 'New'")
    assert types["mean_return"].tolist() == pytest.approx((types["success"] * 0.5 + 0.5).tolist())
    still = comparison.temperatures
    assert still["mean_return"].tolist() == pytest.approx(still["success"].tolist())
    assert row["return_lower"] < row["mean_return"] < row["return_upper"]
    against = comparison.against_untrained.set_index("method").loc["New"]
    # Half a point for every failure is worth nothing in successes.
    rival = comparison.methods.set_index(["method", "temperature"]).loc[
        ("SFTOnly", comparison.best_temperature), "mean_return"
    ]
    assert against["return_difference"] == pytest.approx(row["mean_return"] - rival)
    assert against["return_lower"] < against["return_difference"] < against["return_upper"]
    rounds = comparison.rounds.query("method == 'New' and panel == 'test'").iloc[-1]
    assert rounds[["mean_return", "return_lower", "return_upper"]].tolist() == pytest.approx(
        row[["mean_return", "return_lower", "return_upper"]].tolist()
    )


def test_one_seed_says_nothing_of_probability_of_improvement():
    row = compare(small_study((1,)), PROTOCOL).against_reference.iloc[0]
    assert row["n_seeds"] == 1
    assert row["probability_of_improvement"] is None


def test_a_seed_without_partner_is_named():
    frame = small_study()
    frame = frame[~((frame["method"] == "flatGRPO") & (frame["seed"] == 2))]
    with pytest.raises(UserError, match=r"New against flatGRPO: .* flatGRPO seed 2"):
        compare(frame, PROTOCOL)


def test_runs_that_end_early_are_named():
    frame = small_study()
    late = (frame["method"] == "New") & (frame["seed"] == 2) & (frame["round"] == 2)
    with pytest.raises(UserError, match=r"New: runs end at different rounds .*seed 2: 1"):
        compare(frame[~late], PROTOCOL)


def test_arms_with_different_budgets_are_refused():
    frame = small_study()
    late = (frame["method"] == "New") & (frame["round"] == 2)
    with pytest.raises(UserError, match="different budgets"):
        compare(frame[~late], PROTOCOL)


def test_a_missing_reference_is_named():
    frame = small_study()
    with pytest.raises(UserError, match="'flatGRPO' has no episodes"):
        compare(frame[frame["method"] != "flatGRPO"], PROTOCOL)


def test_a_different_panel_is_refused():
    frame = small_study()
    other = episodes("Other", 1, 2, "test", 0, range(5), hash_prefix="x")
    with pytest.raises(UserError, match="content hash"):
        compare(pd.concat([frame, other]), PROTOCOL)


def test_results_do_not_depend_on_the_order_of_rows(tmp_path):
    study = write_study(tmp_path, seeds=(11, 23), rounds=2, n_test=30, n_validation=12)
    frame = merge_episodes(study.files("eval/*/*/*/episodes.parquet"))
    shuffled = frame.sample(frac=1, random_state=1)
    straight, other = compare(frame, PROTOCOL), compare(shuffled, PROTOCOL)
    pd.testing.assert_frame_equal(straight.against_reference, other.against_reference)
    pd.testing.assert_frame_equal(straight.rounds, other.rounds)
