"""A job refuses to run with settings or code that it was not planned with."""

import json
from dataclasses import replace

import pytest
from places import PROJECT

from hgrpo.cli.stage import parse_and_run, read_settings
from hgrpo.config.canonical import settings_digest
from hgrpo.errors import UserError
from hgrpo.stages import merge, rl_round
from hgrpo.stages.job import Job
from hgrpo.study.study import load_study
from hgrpo.workflow.code_version import code_of
from hgrpo.workflow.plan_check import check_plan, plan_hash, planned_code
from hgrpo.workflow.rules import StudyRules

STUDY = load_study(PROJECT / "configs/studies/smoke.yaml")


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ({"lr": 2}, "c1", "before its settings changed"),
        ({"lr": 1}, "c2", "before the code that it runs changed"),
        ({"lr": 2}, "c2", "before the code that it runs changed"),
    ],
)
def test_what_changed_is_named(settings, code, said):
    with pytest.raises(UserError, match=said):
        check_plan(plan_hash({"lr": 1}, "c1"), settings, code)


def test_a_job_as_planned_and_a_command_without_a_plan_run():
    check_plan(plan_hash({"a": 1, "b": 2}, "c"), {"b": 2, "a": 1}, "c")
    check_plan("", {"a": 1}, "c")


def test_the_planned_code_is_taken_only_if_the_package_is_the_planned_one():
    planned = plan_hash({"lr": 1}, "c1")
    assert planned_code(planned, "p1", "p1") == "c1"
    assert planned_code(planned, "p1", "p2") is None
    assert planned_code(planned, None, "p1") is None
    assert planned_code("", "p1", "p1") is None


def test_a_stages_command_compares_before_it_works(tmp_path):
    config = json.dumps({"methods": ["A"]})
    words = ["--config", config, "--out", str(tmp_path / "o"), str(tmp_path / "none.parquet")]
    planned = plan_hash({"methods": ["A"]}, code_of("merge", {}))
    with pytest.raises(UserError, match="none.parquet"):
        parse_and_run(merge, ["--planned", planned, *words])
    with pytest.raises(UserError, match="this job was planned before"):
        parse_and_run(merge, ["--planned", planned.replace("-", "-0"), *words])


@pytest.mark.parametrize(
    ("stage", "method"), [("rl_round", "flatGRPO"), ("evaluate", "flatGRPO"), ("merge", "")]
)
def test_a_process_on_another_machine_keeps_the_first_processs_plan(stage, method):
    """A Slurm job reads the study again, here with more turns and without an arm."""
    rules = StudyRules(STUDY, "results/smoke")
    env = STUDY.env.model_copy(update={"turn_cap": 14})
    methods = {name: arm for name, arm in STUDY.methods.items() if name != "SFTOnly"}
    edited = replace(STUDY, env=env, methods=methods)
    there = StudyRules(edited, "results/smoke", rules.plans())
    planned = there.options(stage)({"method": method}, {}, {})
    assert planned == ["--planned", rules.plan_hash(stage, method)]
    assert StudyRules(edited, "results/smoke").plan_hash(stage, method) != planned[1]


def test_merge_expects_the_settings_that_a_round_records():
    expected = merge.from_study(STUDY)["training"]
    assert set(expected) == {name for name, arm in STUDY.methods.items() if arm.train}
    for name, digest in expected.items():
        given = json.loads(json.dumps(rl_round.from_study(STUDY, name)))
        recorded = read_settings(rl_round, given, Job(name, 11, 1)).model_dump(mode="json")
        assert settings_digest(recorded) == digest


def test_the_rules_options_are_the_commands_options(tmp_path):
    """Merge has options with many values, and episodes that stand after all options."""
    rules = StudyRules(STUDY, str(tmp_path))
    inputs, outputs = rules.inputs("merge")({}), rules.outputs("merge")
    options = rules.options("merge")({}, inputs, outputs)
    with pytest.raises(UserError, match=r"rl/flatGRPO/seed_11/round_1/summary.json: not a summary"):
        parse_and_run(merge, ["--config", rules.cfg("merge"), *options])
