"""Leave-one-out at a turn that no other rollout reached: by hand, and its bias in a tiny game.

The game: at the first turn `stop` wins, `go` leads to a second turn, where `right` wins and `left`
loses. The policy goes with probability P and then takes `right` with probability Q.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from state_graph_example import credit, group

P, Q = 0.5, 0.75
ENDS = {
    "stop": (1 - P, ("S stop", "success")),
    "left": (P * (1 - Q), ("S go, M left", "failure")),
    "right": (P * Q, ("S go, M right", "success")),
}
RULES = ("zero", "return", "group")


def turn_loo(lone, *ends, rows="alive"):
    settings = {"trajectory": {"mode": "loo", "rows": rows, "lone": lone}}
    return [row.tolist() for row in credit(settings, group(*(ENDS[end][1] for end in ends)))]


def test_by_hand():
    """Three rollouts; only the last goes on, so its second turn has no peers."""
    assert turn_loo("zero", "stop", "stop", "left") == [[0.5], [0.5], [-1.0, 0.0]]
    assert turn_loo("return", "stop", "stop", "right") == [[0.0], [0.0], [0.0, 1.0]]
    assert turn_loo("return", "stop", "stop", "left") == [[0.5], [0.5], [-1.0, 0.0]]
    assert turn_loo("group", "stop", "stop", "left") == [[0.5], [0.5], [-1.0, -1.0]]
    # With a peer at the second turn the rule has no say.
    for lone in RULES:
        assert turn_loo(lone, "stop", "left", "right") == [[0.5], [-1.0, -1.0], [0.5, 1.0]]


@pytest.mark.parametrize("rows", ["once", "alive"])
def test_a_group_of_one(rows):
    assert turn_loo("zero", "right", rows=rows) == [[0.0, 0.0]]
    assert turn_loo("return", "right", rows=rows) == [[1.0, 1.0]]
    assert turn_loo("group", "right", rows=rows) == [[1.0, 1.0]]


def test_the_rule_is_read_only_with_leave_one_out():
    with pytest.raises(
        ValueError, match="trajectory.lone: group has an effect only with mode: loo"
    ):
        credit({"trajectory": {"lone": "group"}}, group(ENDS["stop"][1]))


# Gradient of a rollout's log-probability by the logits of `go` and of `right`, turn by turn.
SCORES = {
    "stop": [(-P, 0.0)],
    "left": [(1 - P, 0.0), (0.0, -Q)],
    "right": [(1 - P, 0.0), (0.0, 1 - Q)],
}
# Of (1 - P) + P Q, the probability to win.
TRUTH = np.array([P * (1 - P) * (Q - 1), P * Q * (1 - Q)])


def moments(rule, size):
    """Relative error of the mean and relative deviation of a group's gradient, over all groups."""
    mean, square = np.zeros(2), 0.0
    for ends in product(ENDS, repeat=size):
        chance = np.prod([ENDS[end][0] for end in ends])
        rows = turn_loo("zero", *ends, rows="once") if rule == "RLOO" else turn_loo(rule, *ends)
        gradient = (
            sum(
                value * np.array(score)
                for end, row in zip(ends, rows, strict=True)
                for value, score in zip(row, SCORES[end], strict=True)
            )
            / size
        )
        mean += chance * gradient
        square += chance * (gradient @ gradient)
    length = np.linalg.norm(TRUTH)
    return np.linalg.norm(mean - TRUTH) / length, np.sqrt(square - mean @ mean) / length


@pytest.mark.parametrize("size", [2, 4])
def test_only_zero_is_biased_by_the_turns_without_peers(size):
    """All others stop with probability (1 - P)^(size - 1), and then the second turn teaches 0."""
    expected = (1 - P) ** (size - 1) * TRUTH[1] / np.linalg.norm(TRUTH)
    assert moments("zero", size)[0] == pytest.approx(expected)
    for rule in ("return", "group", "RLOO"):
        assert moments(rule, size)[0] < 1e-12


def test_the_table_in_the_docs_is_computed_here():
    page = (Path(__file__).parents[4] / "docs" / "methods.md").read_text(encoding="utf-8")
    names = {rule: f"`lone: {rule}`" for rule in RULES} | {"RLOO": "RLOO"}
    for rule, name in names.items():
        cells = [f"{number:.3f}" for size in (2, 4) for number in moments(rule, size)]
        assert f"| {name} | {' | '.join(cells)} |" in page, (name, cells)
