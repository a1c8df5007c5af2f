"""Printing a study, or the settings of one of its stages."""

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
    def call(*words):
        monkeypatch.setattr(sys, "argv", ["config", str(study), *words])
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
    ("words", "message"),
    [
        (["evaluate"], "--method is missing; known: LLMJudge, Progressive"),
        (["evaluate", "--method", "Progresive"], "unknown; did you mean 'Progressive'?"),
    ],
)
def test_a_method_that_a_stage_cannot_be_of_is_one_line(command, capsys, words, message):
    with pytest.raises(SystemExit) as stopped:
        command("--stage", *words)
    assert stopped.value.code == 2
    line = capsys.readouterr().err
    assert message in line
    assert line.startswith("error: ") and line.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["training.filter.value=1.5"],
            "training overridden: training.filter.value: 1.5: strategy top_p requires a share "
            "in (0, 1]",
        ),
        (
            ["variants={Both: {of: PPO, alpha: 0.5}}"],
            "variants overridden: variants.Both: advantage: gae computes advantages from the "
            "critic, so `credit.kind: flat` and `alpha: 0.5` would have no effect; remove both "
            "keys",
        ),
    ],
)
def test_a_mistake_is_one_line_and_status_two(command, study, capsys, words, expected):
    with pytest.raises(SystemExit) as ended:
        command(*words)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"error: command line: {study} with {expected}\n"
