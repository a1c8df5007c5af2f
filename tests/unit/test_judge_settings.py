"""The judge's section of a method's config, and what making a judge needs."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml
from judge_cases import settings

from hgrpo.config.read import validate
from hgrpo.credit.judge import Settings, make
from hgrpo.errors import UserError

PRICES = {"dollars_per_million_input": 0.15, "dollars_per_million_output": 0.6}


@pytest.fixture
def context(tmp_path):
    return SimpleNamespace(cache_dir=tmp_path, environment="alfworld")


@pytest.mark.parametrize("name", ["LLMJudge", "LLMJudgeGroup"])
def test_the_shipped_methods_ask_the_offline_rubric_and_say_so(project, name):
    method = yaml.safe_load((project / f"configs/methods/{name}.yaml").read_text())
    section = method["credit"]
    assert section.pop("kind") == "judge"
    built = validate(Settings, section, name)
    assert built.model_fields_set == set(section)
    assert (built.model, built.base_url) == ("offline-rubric", "service")
    assert built.variant == ("group" if name == "LLMJudgeGroup" else "trajectory")
    assert method["name"] == name
    assert method["label"].endswith("(offline rubric)")
    assert method["alpha"] == 0.5


def test_prices_must_be_given():
    with pytest.raises(UserError, match="dollars_per_million_input: required"):
        validate(Settings, {"model": "gpt-4o-mini"}, "method")


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


def test_an_environment_without_primer_is_named(context):
    context.environment = "chess"
    with pytest.raises(UserError, match="environment 'chess'; known: alfworld, webshop"):
        make(settings(), context)


@pytest.mark.parametrize("package", ["openai", "tenacity"])
def test_the_package_imports_without_its_extra_and_names_it_when_it_is_needed(package):
    code = f"""
import sys
sys.modules[{package!r}] = None
from hgrpo.credit import judge
assert not {{"openai", "httpx2", "torch"}} & {{n for n, m in sys.modules.items() if m}}
from hgrpo.errors import UserError
try:
    judge.make(None, None)
except UserError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == (
        f"credit kind 'judge' needs the package '{package}': pip install -e '.[judge]'"
    )
