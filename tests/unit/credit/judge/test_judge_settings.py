"""The judge's section of a method's config, and what making a judge needs."""

import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml
from judge_cases import settings

from hgrpo.config.read import validate
from hgrpo.credit import judge
from hgrpo.credit.base import Context
from hgrpo.credit.judge import Settings, make
from hgrpo.envs.environment import JudgeText
from hgrpo.errors import UserError

PRICES = {"dollars_per_million_input": 0.15, "dollars_per_million_output": 0.6}


@pytest.fixture
def context(tmp_path):
    return Context("alfworld", cache_dir=tmp_path)


def section(project, name):
    """The `credit:` section of a shipped method, without its kind, and the method."""
    method = yaml.safe_load((project / f"configs/methods/{name}.yaml").read_bytes())
    own = dict(method["credit"])
    assert own.pop("kind") == "judge"
    return own, method


@pytest.mark.parametrize("name", ["LLMJudge", "LLMJudgeGroup"])
def test_the_shipped_methods_ask_the_offline_rubric_and_say_so(project, name):
    own, method = section(project, name)
    built = validate(Settings, own, name)
    assert (built.model, built.base_url) == ("offline-rubric", "service")
    assert built.variant == ("group" if name == "LLMJudgeGroup" else "trajectory")
    assert (built.max_calls, built.dollars_per_million_input) == (None, 0)
    assert method["name"] == method["label"] == name
    assert built.label_remark == "(offline rubric)"
    assert method["alpha"] == 0.5


@pytest.mark.parametrize("name", ["LLMJudge", "LLMJudgeGroup"])
def test_two_lines_make_it_a_language_model(project, name):
    comment = (project / "configs/methods/LLMJudge.yaml").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^#   (\w+): (\S+)$", comment, flags=re.MULTILINE))
    own, _ = section(project, name)
    assert set(lines) == {"model", "base_url"} <= set(own)
    built = validate(Settings, own | lines, name)
    assert (built.model, built.base_url) == ("gpt-4o-mini", "https://api.openai.com/v1")
    prices = (built.dollars_per_million_input, built.dollars_per_million_output)
    assert prices == (0.15, 0.6)
    assert (built.max_calls, built.max_dollars) == (50_000, 5.0)
    assert built.label_remark == ""


def test_one_line_alone_is_named(project):
    own, _ = section(project, "LLMJudge")
    with pytest.raises(
        UserError, match=r"`service` serves only offline-rubric; OpenAI's address is"
    ):
        validate(Settings, own | {"model": "gpt-4o-mini"}, "method")


def test_who_answers_is_said_whatever_the_address():
    assert settings(base_url="http://127.0.0.1:8123/v1").label_remark == "(offline rubric)"
    assert settings(base_url="http://127.0.0.1:8123/v1", model="gpt").label_remark == ""


def test_what_is_filled_in_is_read_back_as_it_was():
    for given in ({"model": "gpt-4.1"}, {"model": "offline-rubric", "base_url": "service"}):
        built = Settings(**given)
        assert Settings(**built.model_dump(mode="json")) == built


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


def test_an_address_has_one_spelling():
    assert Settings(model="gpt-4o", base_url="https://api.openai.com/v1/").base_url == (
        "https://api.openai.com/v1"
    )


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"model": "gpt-9"}, "dollars_per_million_input and dollars_per_million_output"),
        ({"model": "gpt-9", "dollars_per_million_input": 1}, "dollars_per_million_output"),
        (
            {"model": "gpt-4o-mini", "base_url": "https://other/v1"},
            "dollars_per_million_input and dollars_per_million_output",
        ),
    ],
)
def test_prices_that_are_not_known_must_be_given(given, missing):
    with pytest.raises(UserError, match=rf"give {missing} \(known at .*: gpt-4o-mini, "):
        validate(Settings, given, "method")


@pytest.mark.parametrize("given", [{}, {"model": 3}, {"model": None, "base_url": []}])
def test_a_model_that_is_none_is_named(given):
    with pytest.raises(UserError, match="method: model: ") as caught:
        validate(Settings, given, "method")
    assert not [line for line in str(caught.value).splitlines() if "max_calls" in line]
    assert "dollars" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"modle": "x"}, "modle: unknown key; did you mean 'model'?"),
        ({"api_key_env": "sk-secret-1234"}, "must be the name of an environment variable"),
        ({"base_url": "https://me:sk-secret-1234@host/v1"}, "must hold no user, password"),
        ({"base_url": "https://host/v1?key=sk-secret-1234"}, "must hold no user, password"),
        ({"base_url": "localhost:8000/sk-secret-1234"}, "must be `service` or an http(s) address"),
        ({"base_url": "http://host:sk-secret-1234/"}, "must be `service` or an http(s) address"),
        ({"max_calls": -1}, "max_calls: input should be greater than or equal to 0"),
        ({"variant": "turn"}, "variant: input should be 'trajectory' or 'group'"),
        ({"fallback_limit": 1.1}, "fallback_limit: input should be less than or equal to 1"),
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


@pytest.mark.parametrize("name", ["chess", "alfworld.judge", "../alfworld", ""])
def test_an_environment_that_does_not_exist_is_named(context, name):
    with pytest.raises(UserError, match=f"no environment '{re.escape(name)}'"):
        make(settings(), replace(context, environment=name))


@pytest.mark.parametrize("base_url", ["service", "http://127.0.0.1:9/v1"])
def test_an_environment_without_a_rubric_is_named(context, base_url, monkeypatch):
    chess = SimpleNamespace(judge_text=lambda: JudgeText("Chess in text."))
    monkeypatch.setattr(judge, "load", {"chess": chess}.get)
    chosen = settings(base_url=base_url, api_key_env=None)
    with pytest.raises(UserError, match="'chess' has no offline rubric: add `score` to JUDGE_TEXT"):
        make(chosen, replace(context, environment="chess"))
    model = settings(model="m", base_url="http://127.0.0.1:9/v1", api_key_env=None)
    make(model, replace(context, environment="chess"))


def test_a_missing_folder_is_named(context):
    with pytest.raises(UserError, match="a folder for its answers: --cache"):
        make(settings(), replace(context, cache_dir=None))


@pytest.mark.parametrize(
    ("package", "asked"), [("openai", "http://127.0.0.1:9/v1"), ("tenacity", "service")]
)
def test_the_package_imports_without_its_extra_and_names_it_when_it_is_needed(
    package, asked, tmp_path
):
    code = f"""
import sys
sys.modules[{package!r}] = None
from hgrpo.credit import judge
assert not {{"openai", "httpx2", "torch"}} & {{n for n, m in sys.modules.items() if m}}
from hgrpo.credit import judge
from hgrpo.credit.base import Context
from hgrpo.errors import UserError
from pathlib import Path
chosen = judge.Settings(model="offline-rubric", base_url={asked!r}, api_key_env=None)
try:
    judge.make(chosen, Context("alfworld", cache_dir=Path({str(tmp_path)!r})))
except UserError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == (
        f"credit kind 'judge' needs the package '{package}': pip install -e '.[judge]'"
    )
