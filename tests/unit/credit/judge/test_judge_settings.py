"""The judge's section of a method's config, and the needs of `make`."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml
from judge_cases import settings

from hgrpo.config.read import validate
from hgrpo.credit import judge
from hgrpo.credit.base import Context
from hgrpo.credit.judge import Settings, make
from hgrpo.errors import UserError
from hgrpo.games.environment import JudgeText

PRICES = {"dollars_per_million_input": 0.15, "dollars_per_million_output": 0.6}


@pytest.fixture
def context(tmp_path):
    return Context("alfworld", cache_dir=tmp_path)


def section(project, name):
    """The `credit:` section of a shipped method, without its kind, and the method."""
    method = yaml.safe_load((project / f"configs/methods/{name}.yaml").read_bytes())
    keys = dict(method["credit"])
    assert keys.pop("kind") == "judge"
    return keys, method


@pytest.mark.parametrize("name", ["LLMJudge", "LLMJudgeGroup"])
def test_the_shipped_methods_ask_the_offline_rubric_and_say_so(project, name):
    keys, method = section(project, name)
    built = validate(Settings, keys, name)
    assert (built.model, built.base_url) == ("offline-rubric", "service")
    assert built.variant == ("group" if name == "LLMJudgeGroup" else "trajectory")
    assert (built.max_calls, built.dollars_per_million_input) == (None, 0)
    assert method["name"] == method["label"] == name
    assert built.label_remark == "(offline rubric)"
    assert method["alpha"] == 0.5
    with pytest.raises(UserError, match="requires `model: offline-rubric`; OpenAI's address"):
        validate(Settings, keys | {"model": "gpt-4o-mini"}, "method")


def test_what_is_given_stands():
    built = Settings(model="gpt-4o", max_calls=7, dollars_per_million_input=1.0)
    assert (built.max_calls, built.dollars_per_million_input) == (7, 1.0)
    assert built.dollars_per_million_output == 10.0
    assert Settings(model="gpt-4o", max_calls=None).max_calls is None
    assert settings(base_url="service", max_calls=3).max_calls == 3


def test_free_calls_have_no_cap_and_paid_ones_have():
    local = {"model": "qwen", "base_url": "http://127.0.0.1:8000/v1", "api_key_env": None}
    free = {"dollars_per_million_input": 0, "dollars_per_million_output": 0}
    assert Settings(**local, **free).max_calls is None
    assert Settings(**local, **PRICES).max_calls == 50_000


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"model": "gpt-9"}, "dollars_per_million_input and dollars_per_million_output"),
        ({"model": "gpt-9", "dollars_per_million_input": 1}, "dollars_per_million_output"),
    ],
)
def test_prices_that_are_not_known_must_be_given(changes, missing):
    with pytest.raises(UserError, match=rf"set {missing} \(.*: gpt-4o-mini, "):
        validate(Settings, changes, "method")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"modle": "x"}, "modle: unknown key; did you mean 'model'?"),
        ({"api_key_env": "sk-secret-1234"}, "must be the name of an environment variable"),
        (
            {"base_url": "https://me:sk-secret-1234@host/v1"},
            "must be `service`, or an http(s)",
        ),
        ({"base_url": "http://host:sk-secret-1234/"}, "must be `service`, or an http(s)"),
        ({"variant": "turn"}, "variant: input should be 'trajectory' or 'group'"),
    ],
)
def test_a_mistake_is_named_and_no_key_is_repeated(change, expected):
    with pytest.raises(UserError) as caught:
        validate(Settings, {"model": "gpt-4o-mini"} | PRICES | change, "method")
    assert expected in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_is_named_by_its_variable(context, monkeypatch, value):
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(UserError, match="set the environment variable MY_KEY"):
        make(Settings(model="m", api_key_env="MY_KEY", **PRICES), context)


@pytest.mark.parametrize("base_url", ["service", "http://127.0.0.1:9/v1"])
def test_an_environment_without_a_rubric_is_named(context, base_url, monkeypatch):
    chess = SimpleNamespace(judge_text=lambda: JudgeText("Chess in text."))
    monkeypatch.setattr(judge, "load", {"chess": chess}.get)
    chosen = settings(base_url=base_url, api_key_env=None)
    with pytest.raises(UserError, match="'chess' has no offline rubric: add `score` to JUDGE_TEXT"):
        make(chosen, replace(context, environment="chess"))
    model = settings(model="m", base_url="http://127.0.0.1:9/v1", api_key_env=None)
    make(model, replace(context, environment="chess"))
