"""docs/ragen.md: studies, targets and keys of the page exist."""

import re

import pytest
from places import PROJECT

from hgrpo.study.axis import target
from hgrpo.study.study import load_study

PAGE = (PROJECT / "docs/ragen.md").read_text(encoding="utf-8")
TWINS = ["sokoban", "filters", "interventions", "sokoban_gradients"]


def test_studies_and_targets_of_the_page_exist():
    studies = {path.stem for path in (PROJECT / "configs/studies").glob("*.yaml")}
    named = set(re.findall(r"(?:study|STUDY)=(\w+)", PAGE))
    assert named >= {*TWINS[:3], *(f"{name}_qwen" for name in TWINS)} and named <= studies
    axes = load_study(PROJECT / "configs/studies/interventions.yaml").config.axes
    assert set(re.findall(r"\w+_sweep(?= --|`)", PAGE)) == {target(axis) for axis in axes}


@pytest.mark.parametrize("text", re.findall(r'set="([^"]+)"', PAGE))
def test_overrides_of_the_page_are_read(text):
    study = load_study(
        PROJECT / "configs/studies/interventions.yaml", {"set": " ".join(text.split())}
    )
    assert study.overridden


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
