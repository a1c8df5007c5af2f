"""Progress of whole episodes against what they were paid, by hand-computed numbers."""

import pytest

from hgrpo.stages.expert import progress_and_reward


def rows(*pairs):
    return [{"progress": progress, "score": score} for progress, score in pairs]


def test_correlation_by_hand():
    # Deviations (-0.5, 0, 0.5) and (-0.5, 0.5, 0): 0.25 / sqrt(0.5 * 0.5).
    assert progress_and_reward(rows((0.0, 0.0), (0.5, 1.0), (1.0, 0.5))) == pytest.approx(
        {"trajectories": 3, "mean_progress": 0.5, "mean_reward": 0.5, "correlation": 0.5}
    )
    falling = progress_and_reward(rows((0.2, 0.9), (0.4, 0.3)))
    assert falling["correlation"] == pytest.approx(-1.0)


@pytest.mark.parametrize(
    "pairs", [[(0.3, 0.5)], [(1.0, 0.2), (1.0, 0.8)], [(0.1, 1.0), (0.1 + 1e-16, 0.5)]]
)
def test_without_a_difference_there_is_no_correlation(pairs):
    assert progress_and_reward(rows(*pairs))["correlation"] is None


def test_rows_without_progress_are_left_out():
    assert progress_and_reward([]) is None
    assert progress_and_reward([{"score": 1.0}, {"score": 0.0, "progress": None}]) is None
    assert progress_and_reward([{"score": 1.0}, *rows((0.4, 0.0))])["trajectories"] == 1
