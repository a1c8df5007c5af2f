"""Reference rates of a run, by hand."""

import pytest
from reference_rates import game, player
from watched_study import HOUSES, Watched

from hgrpo.games.base import Task
from hgrpo.games.panels import write_panels


@pytest.fixture
def finished():
    """A small run: one round of an arm without continuations, and one of an arm with them."""
    study = Watched(**HOUSES | {"methods": ["SFTOnly", "flatGRPO", "TurnRDV2CF"]})
    for stage, seconds in (("assets", 6), ("expert", 20), ("base", 3), ("sft", 100)):
        study.finish(stage, seconds=seconds)
    for arm, credit, branches in (("flatGRPO", 1, 0), ("TurnRDV2CF", 16, 64)):
        played = {"total_trajectories": 32, "total_turns": 160, "total_forward_tokens": 3200}
        step = {"collect_s": 4, "credit_s": credit / 2, "update_s": 8}
        rows = [{name: 100 * seconds for name, seconds in step.items()}, step]
        summary = played | {"all_play": {"trajectories": 32 + branches}}
        name = f"{arm} seed 11 round 1"
        study.finish(name, summary=summary, train_log={"rows": rows})
    evaluated = {"elapsed_s": 24.5, "n_episodes": 48}
    study.finish("SFTOnly seed 0 evaluation of round 0", summary=evaluated)
    tasks = {split: [Task(split, split, split, "put")] for split in ("train", "validation", "test")}
    write_panels(study.results / "assets/panels.json", tasks)
    return study.results


def test_rates_by_hand(finished):
    row = game(finished)
    assert (row["game"], row["turn_cap"]) == ("alfworld", 10)
    assert (row["turns"], row["tokens"]) == (5, 100)
    assert (row["task"], row["demonstration"]) == (2, 0.01)  # of three and of 2,000
    table = finished / "cost.csv"
    rows = ["10,40,900,", "30,80,2300,", "30,900,9000,7"]  # the last with continuations
    table.write_text(
        "\n".join(["trajectories,replies,tokens,cf_branches", *rows]), encoding="utf-8"
    )
    row = game(finished, table)
    assert (row["turns"], row["tokens"]) == (3, 80)
    row = player(finished)
    assert (row["game"], row["compiled"], row["base"]) == ("alfworld", False, 3)
    assert row["sft"] == pytest.approx(100 / (2000 * 100))
    # The first step, which compiles kernels, counts as the second. Credit that plays nothing
    # counts as play: 2 * 4 + 1 and 2 * 4 seconds of 6,400 tokens.
    assert row["play"] == pytest.approx(17 / 6400, rel=1e-2)
    assert row["update"] == pytest.approx(32 / 6400)
    # 64 continuations, counted as trajectories of 100 tokens.
    assert row["continuation"] == pytest.approx(16 / 6400)
    # Half a second to load the policy.
    assert row["evaluation"] == pytest.approx(24 / (48 * 100))
    # In tokens of a game whose trajectories have 50.
    shorter = player(finished, [{"game": "alfworld", "turn_cap": 10, "tokens": 50}])
    assert shorter["evaluation"] == pytest.approx(2 * 24 / (48 * 100))
    assert shorter["update"] == pytest.approx(2 * 32 / 6400)
