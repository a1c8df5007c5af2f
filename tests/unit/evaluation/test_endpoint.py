"""Which rounds an endpoint reads, and what its settings refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.evaluation.endpoint import check_budget, endpoint_name, round_within, rounds_read
from hgrpo.evaluation.settings import Budget, EvaluationConfig


@pytest.mark.parametrize(
    ("endpoint", "rounds", "read", "name"),
    [
        ("area", 5, [1, 2, 3, 4, 5], "area"),
        ("area", 1, [1], "area"),
        ("last_round", 5, [5], "last_round"),
    ],
)
def test_rounds_by_hand(endpoint, rounds, read, name):
    assert list(rounds_read(endpoint, rounds)) == read
    assert endpoint_name(endpoint) == name


@pytest.mark.parametrize(
    ("budget", "played", "number"),
    [
        (100, [100, 200, 300], 1),
        (299, [100, 200, 300], 2),
        (300, [100, 200, 300], 3),
        # A step of 128 rollouts and 16,384 continuations, twice in each of two rounds.
        (512, [2 * 16_512, 4 * 16_512], 0),
        (33_024, [2 * 16_512, 4 * 16_512], 1),
        # Dynamic sampling plays as many groups as it takes.
        (1000, [800, 1000, 1001], 2),
    ],
)
def test_the_round_within_a_budget_by_hand(budget, played, number):
    assert round_within(budget, played) == number
    assert endpoint_name(Budget(budget=budget)) == f"budget_{budget}"


def test_a_budget_beyond_the_last_round_is_refused():
    with pytest.raises(
        ValueError, match="301 trajectories exceeds the 300 trajectories played in 2 rounds"
    ):
        round_within(301, [100, 300])


@given(st.integers(1, 20), st.integers(1, 5_000), st.integers(1, 200_000))
def test_a_budget_that_passes_the_check_is_within_the_rounds(rounds, per_round, budget):
    if per_round <= budget <= rounds * per_round:
        check_budget(budget, rounds, per_round)
        number = round_within(budget, [per_round * each for each in range(1, rounds + 1)])
        assert number * per_round <= budget < (number + 1) * per_round
        assert 1 <= number <= rounds
    else:
        with pytest.raises(ValueError, match="a budget of .* (is less than|exceeds) the"):
            check_budget(budget, rounds, per_round)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"endpoint": True}, "endpoint: expected area, last_round or {budget: <trajectories>}"),
        ({"endpoint": {"budget": 0}}, "endpoint.budget: input should be greater than 0, not 0"),
        ({"thresholds": [50]}, "thresholds: expected success rates above 0 and up to 1"),
        ({"thresholds": [0.6, 0.5]}, "thresholds: expected distinct scores in ascending order"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(section, message):
    with pytest.raises(UserError) as caught:
        validate(EvaluationConfig, section, "study.yaml: evaluation")
    lines = str(caught.value).splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"study.yaml: evaluation: {message}")
