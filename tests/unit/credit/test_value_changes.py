"""The change of the value at each turn, by hand."""

import numpy as np
import pytest

from hgrpo.credit.value_changes import value_changes


def test_changes_by_hand():
    # Worth 0.25, 0.75 and 0.5 before three turns; the episode ended with 1.
    changes = value_changes(np.array([0.25, 0.75, 0.5]), 1.0)
    assert changes.tolist() == [0.5, -0.25, 0.5]
    assert changes.sum() == pytest.approx(1.0 - 0.25)


def test_a_trajectory_without_turns_has_none():
    assert value_changes(np.zeros(0), 1.0).tolist() == []
