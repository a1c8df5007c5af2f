"""A policy that opens the hall's doors at random, any of them again and again, and its play."""

import pytest
from hall import hall_collector
from tiny_policy import hall_tasks, make_policy
from toy_round import imitate_random_doors

from hgrpo.credit.base import Group


@pytest.fixture(scope="session")
def policy(tmp_path_factory):
    policy = make_policy(tmp_path_factory.mktemp("base"))
    imitate_random_doors(policy)
    return policy


@pytest.fixture(scope="session")
def collector(policy):
    return hall_collector(policy, capacity=64)


@pytest.fixture(scope="module")
def group(collector):
    """Eight trajectories of one task."""
    return Group(collector.collect(hall_tasks(1), 8, ("test", 3))[0], ("test", 3, "hall"))
