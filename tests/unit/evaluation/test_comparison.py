"""The comparison protocol on hand-made episodes, where every number is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from report_fixtures import write_study
from scipy import stats

from hgrpo.errors import UserError
from hgrpo.evaluation import statistics
from hgrpo.evaluation.comparison import compare
from hgrpo.evaluation.merge import merge_episodes
from hgrpo.evaluation.played_endpoints import Protocol
from hgrpo.evaluation.settings import StatisticsConfig

ARMS = ("SFTOnly", "flatGRPO", "New")
# The fewest with verdicts.
SEEDS = (1, 2, 3, 4, 5)


def play(flat=(100, 200), new=(100, 200), seeds=SEEDS):
    """What the two arms have played when each round ends; a reply is a tenth of a trajectory."""
    return pd.DataFrame(
        [
            (method, seed, number, trajectories, 10 * trajectories)
            for method, ends in (("flatGRPO", flat), ("New", new))
            for seed in seeds
            for number, trajectories in enumerate(ends, start=1)
        ],
        columns=["method", "seed", "round", "trajectories", "replies"],
    )


def protocol(**settings):
    """The protocol of the small study."""
    return Protocol(
        methods=ARMS,
        settings=StatisticsConfig(**{"endpoint": "last_round"} | settings),
    )


PROTOCOL = protocol()


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


def small_study(seeds=SEEDS):
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


def test_declared_pairs_are_a_family_of_their_own(comparison):
    third = small_study().query("method == 'New'").assign(method="Third")
    third["success"] &= third["task_id"].str[-2:] != "00"
    pairs = [
        {"arm": "Third", "against": "New"},
        {"arm": "New", "against": "Third"},
        # An arm that has not run.
        {"arm": "New", "against": "Later"},
    ]
    compared = compare(pd.concat([small_study(), third]), protocol(pairs=pairs))
    table = compared.pairs.set_index("method")
    # Third solves all that New solves but one task of twenty.
    assert table["difference"].to_dict() == pytest.approx({"Third": -0.05, "New": 0.05})
    assert table["baseline"].to_dict() == {"Third": "New", "New": "Third"}
    assert (table["p_holm"] == np.minimum(2 * table["p_value"], 1)).all()
    assert len(comparison.pairs) == 0


def test_sft_temperature_is_chosen_on_validation_with_ties_to_the_lower(comparison):
    # 0.3 and 0.7 tie on validation; 1.0 is best on test and must not matter.
    assert comparison.best_temperature == 0.3
    row = comparison.against_untrained.set_index("method").loc["New"]
    assert row["baseline_temperature"] == 0.3
    assert row["baseline_endpoint"] == pytest.approx(7 / 20)
    assert row["difference"] == pytest.approx(11 / 20)


def once(frame):
    """The same study, whose supervised policy was evaluated once, as seed 0."""
    mine = frame["method"] == "SFTOnly"
    return pd.concat([frame[~mine], frame[mine & (frame["seed"] == 1)].assign(seed=0)])


def test_one_evaluation_of_the_supervised_policy_serves_every_seed(comparison):
    compared = compare(once(small_study()), PROTOCOL)
    # Equal greedy play of each seed gave these tables before.
    for name in ("methods", "seeds", "against_untrained", "temperatures", "rounds"):
        table, before = getattr(compared, name).copy(), getattr(comparison, name)
        if name in ("methods", "temperatures"):
            untrained = table["method"] == "SFTOnly" if name == "methods" else slice(None)
            counted = ["n_seeds", *(["inadmissible"] if name == "methods" else [])]
            # What was played once, not once for each of the five seeds.
            table.loc[untrained, counted] *= 5
        pd.testing.assert_frame_equal(table, before)
    assert compared.n_episodes == comparison.n_episodes - 4 * 2 * 4 * 20
    sft = compared.methods.set_index(["method", "temperature"]).loc[("SFTOnly", 0.3)]
    # 7 of 20, a solved and a failed pseudo-task: the error comes from the tasks alone.
    solved = np.r_[np.ones(8), np.zeros(14)]
    error = (solved.var(ddof=1) / 22) ** 0.5
    flat = compared.against_untrained.set_index("method").loc["flatGRPO"]
    assert (sft["n_seeds"], flat["n_seeds"]) == (1, 5)
    centre = statistics.wilson_interval(
        0.35 * (n := (8 / 22) * (14 / 22) / error**2),
        n,
        2 * stats.norm.sf(stats.t.ppf(0.975, 21)),
    )
    assert (sft["endpoint_lower"], sft["endpoint_upper"]) == pytest.approx(centre)
    # flat solves the same 10 of 20 with all seeds: 3 differences of 1, and pseudo-tasks of 1, -1.
    differences = np.r_[np.ones(3), np.zeros(17), 1, -1]
    assert flat["standard_error"] == pytest.approx((differences.var(ddof=1) / 22) ** 0.5)


def test_the_last_round_counts_not_the_best(comparison):
    success = comparison.methods.set_index(["method", "temperature"])["success"]
    assert success["flatGRPO", 0.0] == pytest.approx(10 / 20)
    best = comparison.best_rounds.set_index("method").loc["flatGRPO"]
    assert (best["best_round"], best["best_success"]) == (1, pytest.approx(14 / 20))
    assert best["last_success"] == pytest.approx(10 / 20)


def test_paired_difference_and_verdict(comparison):
    row = comparison.against_reference.set_index("method").loc["New"]
    assert row["difference"] == pytest.approx(8 / 20)
    assert row["lower"] > 0 and row["verdict"] == "better"
    assert list(comparison.against_reference["method"]) == ["New"]


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
    others = comparison.other_endpoints.query("endpoint == 'last_round' and score == 'return'")
    against = others.query("baseline == 'SFTOnly'").set_index("method").loc["New"]
    # Half a point for every failure is worth nothing in successes.
    rival = comparison.methods.set_index(["method", "temperature"]).loc[
        ("SFTOnly", comparison.best_temperature), "mean_return"
    ]
    assert against["difference"] == pytest.approx(row["mean_return"] - rival)
    assert against["lower"] < against["difference"] < against["upper"]
    rounds = comparison.rounds.query("method == 'New' and panel == 'test'").iloc[-1]
    assert rounds[["mean_return", "return_lower", "return_upper"]].tolist() == pytest.approx(
        row[["mean_return", "return_lower", "return_upper"]].tolist()
    )


def in_round(frame, method, **where):
    """Which rows are of a method and have these values."""
    return (frame["method"] == method) & (frame[list(where)] == pd.Series(where)).all(axis=1)


@pytest.mark.parametrize(
    ("without", "endpoint", "message"),
    [
        (
            {"method": "flatGRPO", "seed": 2},
            "last_round",
            "New against flatGRPO: .* flatGRPO seed 2",
        ),
        (
            {"method": "New", "seed": 2, "round": 2},
            "last_round",
            "New: runs end at different rounds .*seed 2: 1",
        ),
        ({"method": "New", "round": 2}, "last_round", "different rounds"),
        ({"method": "flatGRPO"}, "last_round", "'flatGRPO' has no episodes"),
        (
            {"method": "New", "seed": 2, "round": 1},
            "area",
            "New: no test episodes of round 1, seed 2",
        ),
        ({}, {"budget": 201}, "flatGRPO, seed 1: a budget of 201 trajectories exceeds"),
    ],
)
def test_episodes_that_do_not_fit_together_are_refused(without, endpoint, message):
    frame = small_study()
    gone = in_round(frame, **without) if without else pd.Series(False, frame.index)
    with pytest.raises(UserError, match=message):
        compare(frame[~gone], protocol(endpoint=endpoint), play())


def test_the_area_is_the_mean_over_the_rounds_per_task():
    comparison = compare(small_study(), protocol(endpoint="area"))
    methods = comparison.methods.set_index(["method", "temperature"])
    # flat solves 14, then 10 of 20; New 10, then 18; SFT has one evaluation, 8 of 20.
    assert methods.loc[("flatGRPO", 0.0), "endpoint"] == pytest.approx((14 + 10) / 40)
    assert methods.loc[("New", 0.0), "endpoint"] == pytest.approx((10 + 18) / 40)
    assert methods.loc[("SFTOnly", 0.0), "endpoint"] == pytest.approx(8 / 20)
    # The last round stands beside it.
    assert methods.loc[("New", 0.0), "success"] == pytest.approx(18 / 20)
    row = comparison.against_reference.iloc[0]
    # By task: 0 to 9 equal, 10 to 13 half a point less and half more, 14 to 17 half a point more.
    tasks = np.r_[np.zeros(14), np.full(4, 0.5), np.zeros(2)]
    assert comparison.scores["New"].shape == (5, 20)
    assert (comparison.scores["New"] - comparison.scores["flatGRPO"]).tolist() == [
        tasks.tolist()
    ] * 5
    pseudo = np.r_[tasks, 1, -1]
    error = (pseudo.var(ddof=1) / 22) ** 0.5
    assert row["difference"] == pytest.approx(0.1)
    assert row["standard_error"] == pytest.approx(error)
    # Two arms and five seeds have 4 degrees of freedom, also where runs do not differ.
    half = error * stats.t.ppf(0.975, 4)
    assert (row["lower"], row["upper"]) == pytest.approx((0.1 - half, 0.1 + half))
    assert row["baseline_endpoint"] == pytest.approx(0.6)
    against = comparison.against_untrained.set_index("method").loc["flatGRPO"]
    # At temperature 0.3, the best on validation, SFT solves 7 of 20.
    assert against["difference"] == pytest.approx(12 / 20 - 7 / 20)


@pytest.mark.parametrize(
    ("budget", "flat", "new"),
    [(100, 14, 10), (199, 14, 10), (200, 10, 18)],
)
def test_a_budget_reads_the_last_round_within_it(budget, flat, new):
    comparison = compare(small_study(), protocol(endpoint={"budget": budget}), play())
    row = comparison.against_reference.iloc[0]
    assert row["baseline_endpoint"] == pytest.approx(flat / 20)
    assert row["endpoint"] == pytest.approx(new / 20)


def test_a_run_whose_first_round_takes_more_than_the_budget_is_still_the_supervised_policy():
    settings = protocol(endpoint={"budget": 200})
    table = compare(small_study(), settings, play(new=(201, 402))).methods
    greedy = table[table["temperature"] == 0].set_index("method")
    # SFT solves 8 of 20 greedily.
    assert greedy["endpoint"].to_dict() == pytest.approx(
        {"SFTOnly": 8 / 20, "flatGRPO": 10 / 20, "New": 8 / 20}
    )


def test_each_seed_reads_its_own_round():
    # Dynamic sampling: seed 1 has played 200 after two rounds, seed 2 after one.
    mine = pd.concat([play(seeds=(1,)), play(new=(200, 330), seeds=(2,))])
    settings = protocol(endpoint={"budget": 200})
    seeds = compare(small_study((1, 2)), settings, mine).seeds
    assert seeds[seeds["method"] == "New"]["endpoint"].tolist() == pytest.approx([18 / 20, 10 / 20])


def test_without_a_supervised_arm_a_budget_must_reach_the_first_round():
    frame = small_study()
    trained = frame[frame["method"] != "SFTOnly"]
    settings = replace(protocol(endpoint={"budget": 200}), untrained=None)
    with pytest.raises(UserError, match="New, seed 1: the first round exceeds 200 "):
        compare(trained, settings, play(new=(201, 402)))


def test_every_endpoint_stands_beside_the_declared_one():
    comparison = compare(small_study(), protocol(endpoint={"budget": 150}), play())
    table = comparison.endpoints.query("method == 'New'").set_index("endpoint")
    assert table["mean"].to_dict() == pytest.approx(
        {"budget_150": 10 / 20, "area": 14 / 20, "last_round": 18 / 20}
    )
    assert table["declared"].to_dict() == {"budget_150": True, "area": False, "last_round": False}
    others = comparison.other_endpoints.query("baseline == 'flatGRPO'").set_index("endpoint")
    assert others["difference"].to_dict() == pytest.approx({"area": 0.1, "last_round": 0.4})
    assert "verdict" not in others and "p_value" not in others
    assert (others["lower"] < others["difference"]).all()
    by_seed = comparison.seeds.query("method == 'New'")
    assert by_seed["endpoint"].tolist() == pytest.approx([0.5] * 5)
    assert by_seed["success"].tolist() == pytest.approx([0.9] * 5)


def test_returns_are_the_endpoint_if_the_study_says_so():
    frame = small_study()
    failed = (frame["method"] == "New") & ~frame["success"]
    frame.loc[failed, "env_return"] = 0.5
    # By return, 0.7 is the best temperature on validation; by success it is 0.3.
    hot = (frame["method"] == "SFTOnly") & (frame["temperature"] == 0.7)
    frame.loc[hot & (frame["panel"] == "validation"), "env_return"] += 0.1
    comparison = compare(frame, protocol(endpoint="area", score="return"))
    assert comparison.best_temperature == 0.7
    row = comparison.against_reference.iloc[0]
    # New's mean over rounds: 1 for ten tasks, (0.5 + 1) / 2 for eight, 0.5 for two.
    tasks = (
        np.r_[np.ones(10), np.full(8, 0.75), np.full(2, 0.5)]
        - np.r_[np.ones(10), np.full(4, 0.5), np.zeros(6)]
    )
    assert row["difference"] == pytest.approx(tasks.mean())
    # Returns are no counts, so there are no pseudo-tasks.
    assert row["standard_error"] == pytest.approx((tasks.var(ddof=1) / 20) ** 0.5)
    success = comparison.endpoints.query("score == 'success' and endpoint == 'area'")
    assert not success["declared"].any() and len(success) == 4


def test_thresholds_are_derived_from_the_supervised_policy_and_the_reference():
    # SFT ends at 7 of 20, the reference at 10: thresholds at 0.39, 0.42 and 0.46.
    comparison = compare(small_study(), PROTOCOL, play())
    assert comparison.thresholds["threshold"].unique().tolist() == [0.39, 0.42, 0.46]
    declared = compare(small_study(), protocol(thresholds=[0.6, 0.95]), play())
    table = declared.thresholds.set_index(["threshold", "method"])
    # flat has 0.7 after the first round; New has 0.5, then 0.9.
    assert table["reached"].to_dict() == {
        (0.6, "flatGRPO"): 5,
        (0.6, "New"): 5,
        (0.95, "flatGRPO"): 0,
        (0.95, "New"): 0,
    }
    assert table["restricted_mean"].tolist() == [100, 200, 200, 200]


def test_results_do_not_depend_on_the_order_of_rows(tmp_path):
    study = write_study(tmp_path, seeds=(11, 23), rounds=2, n_test=30, n_validation=12)
    frame = merge_episodes(study.files("eval/*/*/*/episodes.parquet"))
    shuffled = frame.sample(frac=1, random_state=1)
    straight, other = compare(frame, PROTOCOL), compare(shuffled, PROTOCOL)
    pd.testing.assert_frame_equal(straight.against_reference, other.against_reference)
    pd.testing.assert_frame_equal(straight.rounds, other.rounds)
