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


def test_it_is_the_same_every_time_and_leaves_other_random_numbers_alone(made):
    torch.manual_seed(1)
    first, drawn = fresh(made), torch.rand(1)
    torch.manual_seed(1)
    assert torch.rand(1) == drawn
    second, other = fresh(made), fresh(made, 1)
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name])
        # The half that is not random is zero.
        assert torch.equal(tensor, other[name]) == (not tensor.any())
    assert {bool(tensor.any()) for tensor in first.values()} == {True, False}
