"""The sync canary: passes on the policy's weights, and on no others."""

import pytest
import torch
from tiny_policy import make_policy

from hgrpo.errors import TrainingError
from hgrpo.rollout.canary import check_sync, sync_tolerance
from hgrpo.rollout.engine import Sampling
from hgrpo.rollout.torch.engine import TorchEngine


def move(policy, size=0.05):
    with torch.no_grad():
        for _, parameter in policy.trainable:
            noise = torch.randn(parameter.shape, generator=torch.manual_seed(0))
            parameter.add_(size * noise)


@pytest.mark.parametrize("capacity", [1, 8])
def test_canary_passes_on_loaded_weights_and_stops_on_stale_ones(tmp_path, capacity):
    policy = make_policy(tmp_path)
    engine = TorchEngine(policy, capacity, Sampling(1.0, 4))
    row = check_sync(engine, policy, "probe")
    # Full tuning without a reference keeps no untrained policy.
    assert row["sync_max"] < 1e-4 and row["sync_base_max"] is None
    with torch.no_grad():
        for _, parameter in policy.trainable:
            parameter.mul_(1.5)
    with pytest.raises(
        TrainingError, match="sync canary: engine and trainer log-probabilities differ by"
    ):
        check_sync(engine, policy, "probe")
    engine.load_weights(policy)
    check_sync(engine, policy, "probe")


@pytest.mark.parametrize("adapt", ["full", "lora"])
def test_the_policy_is_told_from_the_one_before_training(tmp_path, adapt):
    policy = make_policy(tmp_path, adapt)
    policy.save_adapter(tmp_path / "sft")
    policy.load_reference(tmp_path / "sft")
    engine = TorchEngine(policy, 8, Sampling(1.0, 4))
    fresh = check_sync(engine, policy, "probe")
    assert fresh["sync_base_max"] < 1e-4
    move(policy)
    engine.load_weights(policy)
    moved = check_sync(engine, policy, "probe")
    assert moved["sync_max"] < 1e-4 < 1e-2 < moved["sync_base_max"]
    assert all(parameter.requires_grad for _, parameter in policy.trainable)


class Coarse(TorchEngine):
    """An engine that claims bfloat16, in whose tolerance a small change of the policy hides."""

    dtype = torch.bfloat16


def test_an_engine_that_never_took_new_weights_is_found_within_a_coarse_tolerance(tmp_path):
    policy = make_policy(tmp_path, "lora")
    engine = Coarse(policy, 8, Sampling(1.0, 4))
    check_sync(engine, policy, "probe")
    move(policy, 1e-4)
    with pytest.raises(TrainingError, match="from the untrained policy's"):
        check_sync(engine, policy, "probe")
    engine.load_weights(policy)
    row = check_sync(engine, policy, "probe")
    assert row["sync_max"] < row["sync_base_max"] < sync_tolerance(torch.bfloat16, 1.0, 1)


def test_tolerance_is_a_unit_of_the_largest_logit_for_each_step_of_a_random_walk():
    assert sync_tolerance(torch.float32, 20.0, 28) == 1e-3
    # bfloat16 keeps 8 bits: between 8 and 16 its numbers are 1/16 apart. Eight layers add to the
    # hidden state 16 times, and sqrt(16) = 4.
    assert sync_tolerance(torch.bfloat16, 8.0, 8) == 4 / 16
