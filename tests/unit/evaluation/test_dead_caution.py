"""When most groups of a round are dead, and what is said of them."""

from hgrpo.evaluation.cautions import dead_caution


def rows(dead, success=0.1, groups=50, inadmissible=0):
    """Two steps of a round."""
    half = {"n_groups": groups, "success_rate": success, "n_turns": 100}
    half["inadmissible"] = inadmissible
    return [half | {"dead_groups": dead - dead // 2}, half | {"dead_groups": dead // 2}]


def test_most_groups_dead_is_said_with_what_to_change():
    line = dead_caution("flatGRPO seed 11", 1, rows(72))
    assert line.startswith(
        "Most groups are dead: in round 1, 72 % of those of flatGRPO seed 11 gave"
    )
    assert "; 10 % of the games played were won. " in line
    assert "training.rollouts_per_task, a lower training.temperature" in line
    assert line.endswith("or easier games.")
    assert dead_caution("flatGRPO", 1, rows(67)) and not dead_caution("flatGRPO", 1, rows(66))
    assert dead_caution("flatGRPO", 1, []) == ""


def test_groups_that_training_has_solved_are_no_caution():
    assert dead_caution("flatGRPO", 1, rows(90, success=0.95)).endswith(" harder games.")
    assert dead_caution("flatGRPO", 4, rows(95, success=0.97)) == ""
    assert dead_caution("flatGRPO", 4, rows(95, success=0.0)) != ""


def test_without_any_success_more_rollouts_are_no_advice():
    line = dead_caution("flatGRPO", 1, rows(100, success=0.0))
    assert line.endswith("were won. Try a better expert or SFT policy, or easier games.")
    assert "; 0 % of the games played" in line
    assert "rollouts_per_task" not in line


def test_refused_actions_are_named_where_they_are_most():
    line = dead_caution("flatGRPO", 1, rows(90, inadmissible=51))
    assert "% of the games played were won and 51 % of the actions refused. Try" in line
    assert "refused" not in dead_caution("flatGRPO", 1, rows(90, inadmissible=50))
