"""A fresh LoRA adapter has its own random numbers, whatever else was drawn."""

import pytest
import torch
from tiny_policy import make_policy

from hgrpo.policy.load import load_policy


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_policy(tmp_path_factory.mktemp("base"), adapt="lora")


def fresh(made, seed=0):
    return load_policy(made.config, made.base_folder, seed=seed).trained_state()


def test_it_is_the_same_every_time(made):
    torch.manual_seed(1)
    first = fresh(made)
    torch.manual_seed(2)
    second = fresh(made)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    # One half of it is random, the other zero.
    assert {bool(tensor.any()) for tensor in first.values()} == {True, False}


def test_another_seed_starts_elsewhere(made):
    one, other = fresh(made, 0), fresh(made, 1)
    assert all(torch.equal(one[name], other[name]) == (not one[name].any()) for name in one)


def test_nobody_elses_random_numbers_are_used_up(made):
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    fresh(made)
    assert torch.rand(1) == expected
