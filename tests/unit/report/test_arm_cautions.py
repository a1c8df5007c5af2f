"""What a report says of arms that are not what their names promise, by hand."""

import json

from report_fixtures import build_report, resolved_arm, write_study

from hgrpo.report.arms import read_arms
from hgrpo.report.cautions import arm_cautions, confounded, more_play, twin_cautions

NAMES = ("flatGRPO", "Mine", "Other")
ARMS = read_arms({"reference": "flatGRPO", "methods": {name: resolved_arm(name) for name in NAMES}})


def summary(method, number, policy, seed=11, caution=""):
    row = {"method": method, "seed": seed, "round": number, "policy": policy}
    return row | {"parents": {"sft": "sft"}, "credit_caution": caution}


def test_arms_with_equal_final_weights_are_one_arm():
    rounds = [
        *(summary("flatGRPO", 2, "b"), summary("flatGRPO", 1, "a")),
        *(summary("Mine", 1, "a"), summary("Mine", 2, "b")),
        # Equal in the first round, or with another seed, is not the same run.
        *(summary("Other", 1, "a"), summary("Other", 2, "c"), summary("Other", 2, "b", seed=23)),
        *(summary("flatGRPO", 2, "d", seed=23), summary("Mine", 2, "d", seed=23)),
    ]
    expected = (
        "Mine and flat GRPO are the same arm in seed 11, 23: their final weights are bit-identical."
    )
    assert arm_cautions(ARMS, rounds) == [expected]


def test_an_arm_that_still_has_the_weights_of_the_sft_policy_is_that_arm():
    methods = {name: resolved_arm(name) for name in ("SFTOnly", *NAMES)}
    arms = read_arms({"reference": "flatGRPO", "methods": methods})
    rounds = [summary("flatGRPO", 1, "a"), summary("Mine", 1, "sft"), summary("Other", 1, "b")]
    (caution,) = arm_cautions(arms, rounds)
    assert caution.startswith("Mine and SFT only are the same arm in seed ")
    # Without an update all arms are equal.
    (caution,) = arm_cautions(arms, [summary(name, 1, "sft") for name in NAMES])
    assert caution.startswith("Mine, Other, SFT only and flat GRPO are the same arm in seed ")


def test_cautions_of_rounds_are_counted_by_arm_and_older_summaries_have_none():
    rounds = [summary("Mine", number, f"m{number}", caution="it is 0") for number in (2, 3)]
    rounds += [summary("Mine", 1, "m1"), summary("Other", 1, "o1")]
    del rounds[-1]["credit_caution"]
    assert arm_cautions(ARMS, rounds) == ["Mine (2 of 3 rounds): it is 0."]


def snapshot(name, lr=1e-4, kl=0.1, **method):
    return {"method": {"name": name, "alpha": 0.5} | method, "training": {"lr": lr, "kl": kl}}


def test_arms_with_other_credit_and_other_training_are_named_with_the_keys():
    flat = snapshot("flatGRPO", alpha=1.0)
    assert confounded(ARMS, [flat, snapshot("Mine"), snapshot("Other", turn_norm="none")]) == []
    assert confounded(ARMS, [flat, flat, snapshot("Mine", lr=1e-3), snapshot("Other")]) == [
        "Mine differs from flat GRPO not only in credit, but also in training.lr."
    ]
    assert confounded(ARMS, [snapshot("Other", 1e-3, 0), flat, snapshot("Mine", 1e-3, 0)]) == [
        "Other and Mine differ from flat GRPO not only in credit, but also in training.kl and "
        "training.lr."
    ]
    # Another learning rate for equal credit is what the study compares.
    assert confounded(ARMS, [flat, snapshot("Mine", lr=1e-3, alpha=1.0)]) == []
    assert confounded(ARMS, [snapshot("Mine", lr=1e-3)]) == []


def test_other_settings_of_the_method_count_too():
    flat = snapshot("flatGRPO", alpha=1.0, group_norm="std", stream=0)
    mine = snapshot("Mine", group_norm="mean", objective={"rule": "ASPO"}, stream=1)
    assert confounded(ARMS, [flat, mine]) == [
        "Mine differs from flat GRPO not only in credit, but also in group_norm and objective."
    ]


def test_arms_with_more_play_are_named_with_how_much():
    def played(method, number, replies, seed=11):
        return summary(method, number, "w", seed) | {"all_play": {"replies": replies}}

    rounds = [played("flatGRPO", 1, 100), played("flatGRPO", 2, 100), played("Mine", 1, 900)]
    rounds += [played("Other", 1, 120), played("Other", 2, 120)]
    # A seed without the reference is left out.
    rounds += [played("Other", 1, 10_000, seed=23)]
    assert more_play(ARMS, rounds) == ["Mine (4.5 times) played more turns than flat GRPO."]
    assert more_play(ARMS, [summary("flatGRPO", 1, "a"), summary("Mine", 1, "b")]) == []


def test_cautions_stand_on_top_of_the_page_and_in_the_last_line_of_the_run(tmp_path, capsys):
    study = write_study(
        tmp_path, ("SFTOnly", "flatGRPO", "Progressive"), (11,), rounds=1, n_test=20, n_validation=9
    )
    for name, caution in (("flatGRPO", ""), ("Progressive", "it is 0")):
        path = tmp_path / f"rl/{name}/seed_11/round_1/summary.json"
        path.write_text(json.dumps(summary(name, 1, "w", caution=caution)), encoding="utf-8")
    page = build_report(study, ("merge", "report"))
    last = capsys.readouterr().out.splitlines()[-1]
    text = page.read_text(encoding="utf-8")
    for caution in ("Progressive (1 of 1 rounds): it is 0.", "are the same arm in seed"):
        assert caution in last and 0 < text.index(caution) < text.index("<table")
    assert last.endswith(f" {page}")


def test_arms_with_the_same_advantages_are_named(tmp_path):
    folder = tmp_path / "credit_agreement"
    folder.mkdir()
    assert twin_cautions(None) == twin_cautions(folder) == []
    head = "method_a,method_b,label_a,label_b,unexplained\n"
    (folder / "twins.csv").write_text(
        f"{head}flatGRPO,Mine,flat GRPO,Mine!,2e-12\n", encoding="utf-8"
    )
    (caution,) = twin_cautions(folder)
    assert caution.startswith("flat GRPO and Mine! are one method under two names: ")
