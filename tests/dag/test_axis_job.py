"""Which jobs an axis and the analysis of gradients set off, and which jobs an edit of them does."""

import pytest
import yaml
from grid_study import declare

STUDY = {
    "name": "swept",
    "env": "sokoban-analysis",
    "model": "tiny",
    "methods": ["SFTOnly", "PPO"],
    "reference": "PPO",
    "axes": {"rate": {"of": "PPO", "key": "training.lr", "values": [0.001, 0.01]}},
    "gradients": {"after_rounds": [0, 2], "groups": 8, "buckets": 2},
    "seeds": [11],
    "rounds": 2,
}
PAGES = {"Merge the episodes of all arms", "Figures", "Tables and the report"}
CONFIG = {"Resolved configuration of the study"}
ARMS = ("PPO", "rate_0.001", "rate_0.01")


def of_arm(arm):
    rounds = {f"{arm}, seed 11: round {number}" for number in (1, 2)}
    return rounds | {each.replace(": round", ": evaluation of round") for each in rounds}


def analysis(*arms):
    return {f"{arm}, seed 11: gradients after round {number}" for arm in arms for number in (0, 2)}


@pytest.fixture(scope="module")
def played(finished, tmp_path_factory):
    checkout = finished.copy(tmp_path_factory.mktemp("axis") / "checkout")
    (checkout.root / "configs/studies/swept.yaml").write_text(
        yaml.safe_dump(STUDY), encoding="utf-8"
    )
    declare(checkout.root, ("swept", {}), ("swept", {"axes.rate.values": "0.001,0.05"}))
    prefix = f"export PATH={checkout.root / 'stub'}:$PATH; "
    with (checkout.root / "Snakefile").open("a", encoding="utf-8") as handle:
        handle.write(f"\nshell.prefix({prefix!r})\n")
    done = checkout.snakemake("study=swept")
    assert done.returncode == 0, done.stdout + done.stderr
    return checkout


@pytest.fixture
def swept(played, tmp_path):
    """The finished study, free to be edited; no gradients have been measured."""
    return played.copy(tmp_path / "checkout")


def test_a_changed_value_plans_its_arm_and_the_pages_alone(swept):
    assert swept.planned("study=swept") == set()
    swept.edit("configs/studies/swept.yaml", "- 0.01\n", "- 0.05\n")
    assert swept.planned("study=swept") == CONFIG | of_arm("rate_0.05") | PAGES
    assert swept.planned("rate_sweep", "study=swept") == CONFIG | of_arm("rate_0.05")


def test_gradients_are_measured_on_request_and_train_nothing(swept):
    assert swept.planned("gradients", "study=swept") == analysis(*ARMS) | {"Page about gradients"}
    assert swept.snakemake("gradients", "study=swept").returncode == 0
    assert swept.planned("gradients", "study=swept") == swept.planned("study=swept") == set()
    # Other buckets are measured anew, and no policy is trained again.
    swept.edit("configs/studies/swept.yaml", "buckets: 2", "buckets: 3")
    assert swept.planned("gradients", "study=swept") == analysis(*ARMS) | {"Page about gradients"}
    # A policy that has changed is measured anew, alone.
    swept.edit("configs/studies/swept.yaml", "buckets: 3", "buckets: 2")
    weights = "results/swept/rl/PPO/seed_11/round_2/adapter/model.safetensors"
    (swept.root / weights).write_text("other weights\n", encoding="utf-8")
    again = swept.planned("gradients", "study=swept")
    assert again == {"PPO, seed 11: gradients after round 2", "Page about gradients"}
