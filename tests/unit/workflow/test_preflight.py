"""Before the first job: keys, engine, folders and Slurm are there."""

import importlib.util
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from places import PROJECT

from hgrpo.credit.judge.settings import OPENAI
from hgrpo.errors import UserError
from hgrpo.learning.method import MethodConfig
from hgrpo.study.study import load_study
from hgrpo.workflow.preflight import (
    ask_slurm,
    check_jobs,
    missing_variables,
    problem,
    set_variables,
    user_paths,
)

CONFIGS = PROJECT / "configs"
PAID = {"kind": "judge", "model": "gpt-4o-mini", "base_url": OPENAI}
RUBRIC = {"kind": "judge", "model": "offline-rubric", "base_url": "service"}


def arm(credit, **settings):
    return MethodConfig(name="Mine", credit=credit, alpha=0.5, **settings)


@pytest.mark.parametrize(
    ("method", "variable"),
    [
        (arm(PAID), "OPENAI_API_KEY"),
        (arm(PAID | {"api_key_env": "MY_KEY"}), "MY_KEY"),
        (arm(PAID | {"api_key_env": None}), None),
        (arm(RUBRIC), None),
        (arm({"kind": "progress"}), None),
        (arm(PAID, train=False), None),
    ],
)
def test_the_variable_that_holds_a_methods_key(method, variable):
    assert list(missing_variables(method, {})) == ([variable] if variable else [])


def judged(*methods):
    study = load_study(CONFIGS / "studies/smoke.yaml")
    return replace(study, methods=study.methods | {method.name: method for method in methods})


@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": " "}, {"OTHER_KEY": "k"}])
def test_a_missing_key_is_named_with_its_method_and_judge(environment):
    with pytest.raises(UserError) as caught:
        check_jobs(judged(arm(PAID)), [("rl_round", "Mine")], environment, False, "local")
    message = str(caught.value)
    assert message.startswith(f"Mine: the API key of judge gpt-4o-mini at {OPENAI} is missing")
    assert "OPENAI_API_KEY" in message and "\n" not in message


def test_a_start_names_all_that_it_lacks_at_once(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    for name in ("HGRPO_MODELS", "WEBSHOP_DATA"):
        monkeypatch.delenv(name, raising=False)
    study = load_study(CONFIGS / "studies/webshop_5x40.yaml")
    jobs = [(stage, None) for stage in ("fetch_assets", "base", "sft")]
    jobs.append(("rl_round", "LLMJudge_gpt"))
    with pytest.raises(UserError) as caught:
        check_jobs(study, jobs, {}, elsewhere=False, executor="slurm")
    starts = [
        "LLMJudge_gpt: the API key of judge gpt-4o-mini",
        "model qwen2.5-1.5b-5x40: path: $HGRPO_MODELS",
        "engine.kind: vllm: vLLM is not installed",
        "Slurm does not answer: ",
    ]
    lines = str(caught.value).splitlines()
    assert len(lines) == len(starts)
    assert all(map(str.startswith, lines, starts)), lines


def test_pods_get_the_keys_that_a_study_needs_and_no_other():
    study = load_study(CONFIGS / "studies/alfworld_5x40.yaml")
    keys = {"OPENAI_API_KEY": "k", "OTHER_KEY": "o"}
    assert set_variables(study, keys) == ["OPENAI_API_KEY"]
    assert set_variables(study, {"OPENAI_API_KEY": " "}) == []
    assert set_variables(load_study(CONFIGS / "studies/bakeoff.yaml"), keys) == []


@pytest.mark.parametrize(
    ("jobs", "refused"),
    [
        ([("rl_round", "Mine")], True),
        ([("rl_round", "flatGRPO"), ("evaluate", "Mine")], False),
        ([("credit_agreement", None)], True),
        ([("figures", None)], False),
    ],
)
def test_jobs_that_ask_a_judge_need_its_key(jobs, refused):
    raises = pytest.raises(UserError, match="^Mine: the API key of judge")
    with raises if refused else nullcontext():
        check_jobs(judged(arm(PAID)), jobs, {}, elsewhere=False, executor="local")


def test_a_folder_that_is_not_there_is_named(tmp_path, monkeypatch):
    study = load_study(CONFIGS / "studies/alfworld_qwen.yaml")
    monkeypatch.delenv("HGRPO_MODELS", raising=False)

    def lack():
        return "\n".join(problem(file) for file in user_paths(study) if file.stage == "base")

    text = lack()
    assert text.startswith("model qwen2.5-1.5b-instruct: path: ")
    assert "variable is not set; expected a local folder with a Hugging Face model" in text
    monkeypatch.setenv("HGRPO_MODELS", str(tmp_path))
    folder = tmp_path / Path(study.model.path).name
    folder.mkdir()
    assert f"no such file or folder: {folder}/config.json; " in lack()
    (folder / "config.json").touch()
    assert f"no such file or folder: {folder}/*.safetensors; " in lack()
    (folder / "model.safetensors").touch()
    assert lack() == ""


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONFIGS / "studies").glob("*.yaml")))
def test_what_generates_its_tasks_needs_no_folder(name):
    study = load_study(CONFIGS / f"studies/{name}.yaml")
    if study.env.source != "folder" and study.model.path is None:
        assert not user_paths(study)


def test_a_slurm_that_does_not_answer_is_said_with_its_words(tmp_path):
    assert ask_slurm("true") == (True, "")
    answers, text = ask_slurm(str(tmp_path / "no-such-command"))
    assert not answers
    assert text.startswith("Slurm does not answer: ") and text.endswith("no-such-command'")
    deaf = tmp_path / "sinfo"
    deaf.write_text(
        "#!/bin/sh\necho 'slurm_load_partitions: Unable to contact slurm controller' >&2\nexit 1\n",
        encoding="utf-8",
    )
    deaf.chmod(0o755)
    answers, text = ask_slurm(str(deaf))
    assert not answers and text.startswith("Slurm does not answer: slurm_load_partitions: Unable")
    deaf.write_text("#!/bin/sh\necho 'cpu* (null)'\necho 'gpu gpu:8'\n", encoding="utf-8")
    assert ask_slurm(str(deaf)) == (True, "cpu* (null); gpu gpu:8")
