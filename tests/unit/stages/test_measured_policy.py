"""Whose policy it is that `gradients_round` measures."""

import json

import pytest

from hgrpo.errors import UserError
from hgrpo.stages.gradients_round import check_measured
from hgrpo.stages.paths import Job


def adapter(folder, weights, summary=None):
    """A policy's folder; None for its summary leaves it without one."""
    path = folder / "adapter"
    path.mkdir(parents=True)
    (path / "model.safetensors").write_text(weights, encoding="utf-8")
    if summary is not None:
        (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return path


@pytest.fixture
def policies(tmp_path):
    ppo = {"method": "PPO", "seed": 11, "round": 1}
    return {
        "sft": adapter(tmp_path / "sft", "first", {"weights": "..."}),
        "other sft": adapter(tmp_path / "other", "second", {"weights": "..."}),
        "copied sft": adapter(tmp_path / "copy", "first"),
        "trained": adapter(tmp_path / "rl", "trained", ppo),
        "copied": adapter(tmp_path / "moved", "trained"),
    }


@pytest.mark.parametrize(
    ("policy", "method", "seed", "number", "message"),
    [
        ("trained", "FilterTopP", 11, 1, "--policy: {} is of method PPO, not FilterTopP"),
        ("trained", "PPO", 99, 1, "--policy: {} is of seed 11, not 99"),
        ("trained", "PPO", 11, 2, "--policy: {} is of round 1, not 2"),
        ("other sft", "PPO", 11, 0, "--policy: {} has other weights than the SFT policy"),
        ("copied", "PPO", 11, 1, "{}/../summary.json: no such file; it names the arm, seed"),
    ],
)
def test_another_policy_is_refused(policies, policy, method, seed, number, message):
    path = policies[policy]
    with pytest.raises(UserError) as refused:
        check_measured(path, policies["sft"], method, Job(seed=seed, round=number))
    expected = message.replace("{}/..", str(path.parent)).format(path)
    assert str(refused.value).startswith(expected) and "\n" not in str(refused.value)


@pytest.mark.parametrize(("policy", "number"), [("trained", 1), ("sft", 0), ("copied sft", 0)])
def test_the_policy_of_the_job_is_measured(policies, policy, number):
    check_measured(policies[policy], policies["sft"], "PPO", Job(seed=11, round=number))
