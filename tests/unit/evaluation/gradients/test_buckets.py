"""Buckets of groups by the deviation of their returns."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hgrpo.evaluation.gradients.buckets import ALL, buckets


def sizes(deviations, mode="quantile", number=6):
    return {each.name: len(each.groups) for each in buckets(deviations, mode, number)}


def test_twenty_groups_in_six_buckets():
    # RAGEN's own cut is 3, 3, 3, 3, 3, 5.
    assert list(sizes(range(20)).values()) == [4, 4, 3, 3, 3, 3, 20]


def test_the_first_bucket_holds_the_smallest_deviations_and_ties_keep_their_order():
    first, last, every = buckets([2.0, 0.5, 2.0, 0.0], "quantile", 2)
    assert (first.name, first.groups.tolist()) == ("bucket_1", [3, 1])
    assert (last.name, last.groups.tolist()) == ("bucket_2", [0, 2])
    assert (every.name, every.groups.tolist()) == (ALL, [3, 1, 0, 2])


def test_fixed_buckets_are_half_open_and_empty_ones_are_left_out():
    parts = buckets([0.0, 0.999, 1.0, 4.999, 5.0, 90.0], "fixed", 6)
    assert {each.name: each.groups.tolist() for each in parts} == {
        "bucket_1": [0, 1],
        "bucket_2": [2],
        "bucket_5": [3],
        "bucket_6": [4, 5],
        ALL: [0, 1, 2, 3, 4, 5],
    }


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=60),
    st.integers(1, 8),
    st.sampled_from(["quantile", "fixed"]),
)
def test_every_group_is_in_one_bucket_and_buckets_are_in_order(deviations, number, mode):
    number = min(number, len(deviations))
    *parts, every = buckets(deviations, mode, number)
    assert sorted(np.concatenate([each.groups for each in parts])) == list(range(len(deviations)))
    assert sorted(every.groups) == list(range(len(deviations)))
    values = np.array(deviations)
    for lower, higher in pairwise(parts):
        assert values[lower.groups].max() <= values[higher.groups].min()
    if mode == "quantile":
        counts = [len(each.groups) for each in parts]
        assert len(parts) == number and max(counts) - min(counts) <= 1
