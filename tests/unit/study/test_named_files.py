"""Overrides of the files that a study names, and mistakes in several files, all listed at once."""

import shutil
from pathlib import Path

import pytest
import yaml
from places import PROJECT
from stage_settings import stage_settings

from hgrpo.errors import UserError
from hgrpo.study.study import Study, load_study

CONFIGS = PROJECT / "configs"


def bakeoff(**overrides: object) -> Study:
    return load_study(CONFIGS / "studies/bakeoff.yaml", overrides)


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """A copy of configs/ that a test may spoil."""
    return Path(shutil.copytree(CONFIGS, tmp_path / "configs"))


def edit(path: Path, **keys: object) -> None:
    path.write_text(
        yaml.safe_dump(yaml.safe_load(path.read_text(encoding="utf-8")) | keys), encoding="utf-8"
    )


def mistake(study: Path, **overrides: object) -> str:
    with pytest.raises(UserError) as caught:
        load_study(study, overrides)
    return str(caught.value)


def test_keys_of_environment_and_model_are_those_of_the_resolved_study():
    overrides = {"env.turn_cap": "50", "env.panels.test": "600", "model.max_length": "700"}
    changed, plain = bakeoff(**overrides).resolved(), bakeoff().resolved()
    assert changed["env"]["turn_cap"] == 50 != plain["env"]["turn_cap"]
    assert changed["env"]["panels"] == plain["env"]["panels"] | {"test": 600}
    assert changed["model"] == plain["model"] | {"max_length": 700}
    assert bakeoff(**overrides).overridden == {
        "env.turn_cap": 50,
        "env.panels.test": 600,
        "model.max_length": 700,
    }


@pytest.mark.parametrize(
    "overrides",
    [
        {"set": "env.turn_cap=50"},
        {"env": {"turn_cap": "50"}},
        {"set": "env={turn_cap: 50}"},
        {"env": "alfworld-long", "env.turn_cap": 50},
    ],
)
def test_a_section_has_several_spellings(overrides):
    study = bakeoff(**overrides)
    assert study.env.turn_cap == 50
    assert study.config.env == "alfworld-long"
    assert study.overridden == {"env.turn_cap": 50}


def test_a_section_in_braces_keeps_the_other_keys_of_the_file():
    config, plain = bakeoff().config, bakeoff().methods["LLMJudge"].credit.settings
    assert set(yaml.safe_load((CONFIGS / "studies/bakeoff.yaml").read_bytes())["training"]) > {"lr"}
    for typed in ("{max_calls: 7}", "{kind: judge, max_calls: 7}"):
        study = bakeoff(set=f"methods.LLMJudge.credit={typed} training={{lr: 1e-4}}")
        assert study.methods["LLMJudge"].credit.settings == plain | {"max_calls": 7}
        assert study.config.training == config.training.model_copy(update={"lr": 1e-4})
    address = "base_url: https://api.openai.com/v1"
    credit = {"set": f"methods.LLMJudge.credit={{model: gpt-4o-mini, {address}}}"}
    changed = bakeoff(**credit).methods["LLMJudge"].credit.settings
    assert changed["base_url"] == "https://api.openai.com/v1" != plain["base_url"]


def test_variants_may_have_credit_of_another_kind():
    keys = "{of: LLMJudge, turn_norm: none, credit: {kind: vine, continuations: 4}}"
    study = bakeoff(set=f"variants.Cheap={keys} methods=SFTOnly,flatGRPO,flatGRPO_AA,Cheap")
    credit = study.methods["Cheap"].credit
    assert (credit.kind, credit.declared.continuations) == ("vine", 4)
    assert "model" not in credit.settings


def test_a_system_text_of_a_chat_model_is_taken_as_it_is():
    text = "Answer with one command: no more, 'please' #1"
    path = CONFIGS / "studies/smollm2_cpu.yaml"
    study = load_study(path, {"set": f"rounds=2 model.system={text}"})
    assert study.model.system == text
    assert load_study(path, {"model.system": "null"}).model.system is None


def test_keys_of_one_method_change_the_jobs_of_this_arm_alone():
    key = "methods.Vine.credit.continuations"
    changed, plain = bakeoff(**{key: "8"}), bakeoff()
    assert changed.overridden == {key: 8}
    for name, method in plain.methods.items():
        for stage in ["rl_round", "evaluate"] if method.train else ["evaluate"]:
            same = stage_settings(changed, stage, name) == stage_settings(plain, stage, name)
            assert same == (name != "Vine" or stage == "evaluate"), (stage, name)


def test_a_variant_is_a_method_too(configs):
    path = configs / "studies/bakeoff.yaml"
    slow = {"Slow": {"of": "Vine", "training": {"lr": 1e-5}}}
    edit(path, variants=slow, methods=["flatGRPO", "Slow", "Vine", "flatGRPO_AA"])
    study = load_study(path, {"methods.Slow.alpha": "0.5"})
    assert study.methods["Slow"].alpha == 0.5 != study.methods["Vine"].alpha
    assert study.training["Slow"].lr == 1e-5
    assert study.overridden == {"variants.Slow.alpha": 0.5}


BAKEOFF = f"{CONFIGS}/studies/bakeoff.yaml"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"env.turn_cp": 5}, "env.turn_cp: unknown key; did you mean 'turn_cap'?"),
        ({"env.name": "x"}, "env.name: unknown key; names cannot be changed"),
        ({"model.max_length": ""}, "model.max_length=: expected a value"),
        ({"Vine.alpha": 1}, "Vine.alpha: unknown key; did you mean 'methods.Vine.alpha'?"),
        ({"methods.Vin.alpha": 1}, "methods.Vin.alpha: not a method of the study's file; did"),
        ({"methods.GiGPO.alpha": 1}, "methods.GiGPO.alpha: not a method of the study's file; add"),
        (
            {"set": "methods.Vine={alpha: 0.3}"},
            "methods.Vine: expected a key of the method, such as alpha",
        ),
        (
            {"env.turn_cap": "x"},
            f"{CONFIGS}/envs/alfworld-long.yaml with env.turn_cap overridden: turn_cap: input",
        ),
        (
            {"methods.Vine.alpha": 0.5, "methods": "SFTOnly,flatGRPO"},
            "methods.Vine.alpha: not used by any arm of this run (SFTOnly,",
        ),
        (
            {"variants.Slow": "{of: Vine, training: {lr: 1.0e-5}}"},
            "variants.Slow: not used by any arm of this run (SFTOnly, flat",
        ),
        (
            {"env.panels.test": 3},
            f"{BAKEOFF} with env overridden: evaluation.test_games: 500 games requested, but",
        ),
    ],
)
def test_a_mistake_names_the_key(overrides, message):
    line = mistake(CONFIGS / "studies/bakeoff.yaml", **overrides)
    assert line.startswith(f"command line: {message}") and "\n" not in line


def test_all_mistakes_of_a_file_are_listed(configs):
    path = configs / "studies/bakeoff.yaml"
    edit(path, round=3, rounds=0, training={"lrr": 1, "epochs": -1})
    assert [line.removeprefix(f"{path}: ") for line in mistake(path).splitlines()] == [
        "rounds: input should be greater than or equal to 1, not 0",
        "training.epochs: input should be greater than 0, not -1",
        "training.lrr: unknown key; did you mean 'lr'?",
        "round: unknown key; did you mean 'rounds'?",
    ]


def test_a_mistake_of_a_named_file_is_not_the_command_lines(configs):
    edit(configs / "methods/GiGPO.yaml", labl="x")
    overrides = {"methods": "flatGRPO,GiGPO", "seeds": 3}
    line = mistake(configs / "studies/bakeoff.yaml", **overrides)
    assert line.startswith(f"{configs}/methods/GiGPO.yaml: labl: unknown key")
