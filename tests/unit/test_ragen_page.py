"""docs/ragen.md: every script, option and figure of RAGEN has its row, and what it names exists."""

import re

import pytest
from places import PROJECT

from hgrpo.study.axis import target
from hgrpo.study.study import load_study

PAGE = (PROJECT / "docs/ragen.md").read_text(encoding="utf-8")
# Of the three sweeps, the training with analysis, the probe of a checkpoint and the plots.
SCRIPTS = """
run_top_p_sweep.sh run_kl_sweep.sh run_entropy_sweep.sh run_sokoban_ppo_filter_grad_analysis.sh
run_sokoban_ppo_filter_grad_analysis_probe_ckpt.sh plot_gradient_analysis.py
"""
OPTIONS = """
--steps --rollout_filter_value --kl-values --entropy-values --rollout_filter_include_zero --gpus
--gpus-per-exp --ray-num-cpus --gpu-memory-utilization --save-freq --algo --checkpoint-step
--checkpoint-root --resume-from-path --with-val --ppo-micro-batch-size-per-gpu
--log-prob-micro-batch-size-per-gpu
"""
FIGURES = "summary plots loss_plots reward_std normed_grads"
FOLDERS = """
logs/top_p_sweep_ logs/kl_sweep_ logs/entropy_sweep_ logs/gradient_analysis_sokoban_
model_saving/gradient_analysis/ model_saving/gradient_analysis_probe/ gradient_analysis_outputs/
"""
FIRST_CELLS = [row.split("|")[1] for row in PAGE.splitlines() if row.startswith("| ")]
TWINS = ["sokoban", "filters", "interventions", "sokoban_gradients"]


def test_what_ragen_has_stands_in_a_row():
    named = [f"`{name}`" for name in f"{SCRIPTS} {OPTIONS} {FIGURES}".split()]
    named += [f"`{folder}" for folder in FOLDERS.split()]
    assert [name for name in named if not any(name in cell for cell in FIRST_CELLS)] == []


def test_studies_and_targets_of_the_page_exist():
    studies = {path.stem for path in (PROJECT / "configs/studies").glob("*.yaml")}
    named = set(re.findall(r"(?:study|STUDY)=(\w+)", PAGE))
    assert named >= {*TWINS[:3], *(f"{name}_qwen" for name in TWINS)} and named <= studies
    axes = load_study(PROJECT / "configs/studies/interventions.yaml").config.axes
    assert set(re.findall(r"\w+_sweep(?= --|`)", PAGE)) == {target(axis) for axis in axes}


@pytest.mark.parametrize("text", re.findall(r'set="([^"]+)"', PAGE))
def test_overrides_of_the_page_are_read(text):
    path = PROJECT / "configs/studies/interventions.yaml"
    assert load_study(path, {"set": " ".join(text.split())}).overridden


def test_keys_of_the_page_exist():
    keys = (PROJECT / "docs/keys.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:training|gradients|engine)\.\w+)", PAGE))
    assert len(named) > 8
    for name in named:
        assert f"`{name.split('.')[1]}`" in keys, name


@pytest.mark.parametrize("name", TWINS)
def test_the_twins_have_the_same_arms_at_ragens_sizes(name):
    one = load_study(PROJECT / f"configs/studies/{name}.yaml")
    twin = load_study(PROJECT / f"configs/studies/{name}_qwen.yaml")
    assert list(twin.methods) == list(one.methods) and twin.axis_arms == one.axis_arms
    assert twin.config.reference == one.config.reference
    training, evaluation = twin.config.training, twin.config.evaluation
    assert (training.tasks_per_step, training.rollouts_per_task) == (8, 16)
    steps = {"interventions": 400, "sokoban_gradients": 100}.get(name, 200)
    assert twin.config.rounds * training.steps_per_round == steps
    assert evaluation.validation_games == 512 and evaluation.temperatures == [0.0, 0.5]
    assert twin.model.path.endswith("Qwen2.5-3B") and twin.env.penalties == "fair"
    if name == "sokoban_gradients":
        gradients = twin.config.gradients
        steps = [round * training.steps_per_round + 1 for round in gradients.after_rounds]
        assert steps == [1, 51, 101] and gradients.with_validation
        assert (gradients.groups, gradients.rollouts) == (128, 16)
