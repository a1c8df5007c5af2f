"""Faults for drills: their shares, and independence of the order of requests."""

import random

import pytest

from hgrpo.credit.judge.server import FAULTS, FaultPlan

BODIES = [f"body {i}".encode() for i in range(500)]


def fates(shares, seed, bodies):
    plan = FaultPlan(shares, seed)
    return [(body, plan.draw(body)) for body in bodies]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_share_is_met(fault):
    drawn = [fate for _, fate in fates({fault: 0.2}, 0, BODIES)]
    assert set(drawn) == {fault, None}
    assert 70 < drawn.count(fault) < 130


def test_faults_are_drawn_independently():
    drawn = [fate for _, fate in fates(dict.fromkeys(FAULTS, 0.2), 3, BODIES)]
    assert 120 < drawn.count(None) < 210  # 0.8^5 of 500 is 164
    assert set(drawn) == {None, *FAULTS}


def test_the_order_of_requests_does_not_matter_but_repetition_and_seed_do():
    shares = dict.fromkeys(FAULTS, 0.2)
    shuffled = random.Random(0).sample(BODIES, len(BODIES))
    first = fates(shares, 1, BODIES)
    assert dict(fates(shares, 1, shuffled)) == dict(first)
    assert dict(fates(shares, 2, BODIES)) != dict(first)
    again = fates(shares, 1, BODIES + BODIES)
    assert again[:500] == first
    assert again[500:] != first
