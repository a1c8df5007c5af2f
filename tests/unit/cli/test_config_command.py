"""Printing a study, or what one of its stages is given."""

import json
import sys

import pytest
from stage_settings import stage_settings

from hgrpo.cli import config
from hgrpo.cli.entry import read_config
from hgrpo.command import run
from hgrpo.config.canonical import as_json
from hgrpo.study.study import load_study


@pytest.fixture
def study(project):
    return project / "configs/studies/bakeoff.yaml"


@pytest.fixture
def command(monkeypatch, study):
    def call(*given):
        monkeypatch.setattr(sys, "argv", ["config", str(study), *given])
        run(config.main)

    return call


@pytest.mark.parametrize(
    ("stage", "method"),
    [("figures", None), ("report", None), ("credit_agreement", None), ("credit_fit", "TurnRDV2")],
)
def test_a_stage_is_printed_as_the_pipeline_gives_it(command, study, capsys, stage, method):
    command("--stage", stage, *(["--method", method] if method else []), "seeds=11,23")
    printed = capsys.readouterr().out
    expected = stage_settings(load_study(study, {"seeds": "11,23"}), stage, method)
    assert printed == as_json(expected) + "\n"
    assert read_config(printed) == json.loads(printed)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["evaluate"], "--method is missing; known: LLMJudge, Progressive"),
        (["evaluate", "--method", "Progresive"], "unknown; did you mean 'Progressive'?"),
        (["credit_fit", "--method", "flatGRPO"], "nothing is fitted for its credit, 'flat'"),
        (["rl_round", "--method", "SFTOnly"], "--method SFTOnly: it is not trained"),
    ],
)
def test_a_method_that_a_stage_cannot_be_of_is_one_line(command, capsys, given, message):
    with pytest.raises(SystemExit) as stopped:
        command("--stage", *given)
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("error: ") and said.count("\n") == 1


@pytest.mark.parametrize(
    "given",
    [
        ["--method", "flatGRPO"],
        ["--stage", "report", "--method", "flatGRPO"],
        ["--stage", "reprot"],
    ],
)
def test_options_that_would_not_be_read_are_refused(command, capsys, given):
    with pytest.raises(SystemExit):
        command(*given)
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            ["training.filter.value=1.5"],
            "training overridden: training.filter.value: 1.5: strategy top_p takes a share above "
            "0 and at most 1",
        ),
        (
            ["training.rollouts_per_task=1", "training.filter.score=variance"],
            "training overridden: training.filter.score: variance compares the trajectories of a "
            "group, and rollouts_per_task is 1",
        ),
        (
            ["variants={Both: {of: PPO, alpha: 0.5}}"],
            "variants overridden: variants.Both: advantage: gae takes the turns' credit from the "
            "critic, so credit.kind: flat with alpha: 0.5 would not be used; leave both out",
        ),
    ],
)
def test_a_mistake_is_one_line_and_status_two(command, study, capsys, given, expected):
    with pytest.raises(SystemExit) as ended:
        command(*given)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"error: command line: {study} with {expected}\n"
