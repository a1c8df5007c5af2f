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


def mistakes(study: Path, **overrides: object) -> list[str]:
    with pytest.raises(UserError) as caught:
        load_study(study, overrides)
    return str(caught.value).splitlines()


def test_keys_of_environment_and_model_are_those_of_the_resolved_study():
    given = {"env.turn_cap": "50", "env.panels.test": "600", "model.max_length": "700"}
    changed, plain = bakeoff(**given).resolved(), bakeoff().resolved()
    assert changed["env"]["turn_cap"] == 50 != plain["env"]["turn_cap"]
    assert changed["env"]["panels"] == plain["env"]["panels"] | {"test": 600}
    assert changed["model"] == plain["model"] | {"max_length": 700}
    assert bakeoff(**given).overridden == {
        "env.turn_cap": 50,
        "env.panels.test": 600,
        "model.max_length": 700,
    }


@pytest.mark.parametrize(
    "given",
    [
        {"set": "env.turn_cap=50"},
        {"env": {"turn_cap": "50"}},
        {"set": "env={turn_cap: 50}"},
        {"env": "alfworld-long", "env.turn_cap": 50},
    ],
)
def test_a_section_has_several_spellings(given):
    study = bakeoff(**given)
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


def test_a_key_changes_a_file_that_the_command_line_names():
    games = {"evaluation.test_games": 8, "evaluation.validation_games": 8}
    study = bakeoff(**{"env": "alfworld-smoke", "env.turn_cap": "50"}, **games)
    assert study.env.turn_cap == 50
    assert study.config.env == "alfworld-smoke"


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


def test_keys_of_an_environment_change_the_jobs_that_play():
    changed, plain = bakeoff(**{"env.turn_cap": 7}), bakeoff()
    for stage, method in (("assets", None), ("rl_round", "flatGRPO"), ("evaluate", "flatGRPO")):
        before, after = (stage_settings(study, stage, method) for study in (plain, changed))
        assert before != after, stage


def test_a_variant_is_a_method_too(configs):
    path = configs / "studies/bakeoff.yaml"
    slow = {"Slow": {"of": "Vine", "training": {"lr": 1e-5}}}
    edit(path, variants=slow, methods=["flatGRPO", "Slow", "Vine", "flatGRPO_AA"])
    study = load_study(path, {"methods.Slow.alpha": "0.5"})
    assert study.methods["Slow"].alpha == 0.5 != study.methods["Vine"].alpha
    assert study.training["Slow"].lr == 1e-5
    assert study.overridden == {"variants.Slow.alpha": 0.5}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"env.turn_cp": 5}, "command line: env.turn_cp: unknown key; did you mean 'turn_cap'?"),
        ({"env.name": "x"}, "command line: env.name: unknown key; a file keeps its name"),
        ({"env.turn_cap": ""}, "command line: env.turn_cap=: a value was expected"),
        (
            {"Vine.alpha": 1},
            "command line: Vine.alpha: unknown key; did you mean 'methods.Vine.alpha'?",
        ),
        (
            {"methods.Vin.alpha": 1},
            "command line: methods.Vin.alpha: no method of the study's file; did",
        ),
        (
            {"methods.GiGPO.alpha": 1},
            "command line: methods.GiGPO.alpha: no method of the study's file",
        ),
        (
            {"env.turn_cap": "x"},
            f"command line: {CONFIGS}/envs/alfworld-long.yaml with env.turn_cap overridden: "
            "turn_cap: input should be a valid integer",
        ),
        (
            {"methods.Vine.credit.continuation": 8},
            f"command line: {CONFIGS}/methods/Vine.yaml with methods.Vine.credit.continuation "
            "overridden: credit.continuation: unknown key; did you mean 'continuations'?",
        ),
        (
            {"methods.Vine.alpha": 0.5, "methods": "SFTOnly,flatGRPO"},
            "command line: methods.Vine.alpha: no arm of this run reads it; its arms are SFTOnly,",
        ),
        (
            {"methods": "flatGRPO", "set": "methods.flatGRPO.alpha=1 methods.Vine.alpha=0.5"},
            "command line: methods.Vine.alpha: no arm of this run reads it; its arms are flatGRPO",
        ),
        (
            {"variants.Slow": "{of: Vine, training: {lr: 1.0e-5}}"},
            "command line: variants.Slow: no arm of this run reads it; its arms are SFTOnly, flat",
        ),
        (
            {"env.panels.test": 3},
            f"command line: {CONFIGS}/studies/bakeoff.yaml with env overridden: "
            "evaluation.test_games: 500 games are wanted, but the test panel",
        ),
    ],
)
def test_a_mistake_names_the_key(given, said):
    (line,) = mistakes(CONFIGS / "studies/bakeoff.yaml", **given)
    assert line.startswith(said)


def test_a_copied_study_lists_all_its_mistakes(configs):
    path = configs / "studies/mine.yaml"
    shutil.copy(configs / "studies/bakeoff.yaml", path)
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    edit(
        path,
        methods=["SFTOnly", "flatGRPO", "Surprise"],
        round=3,
        rounds=True,
        training=content["training"] | {"lrr": 1, "epochs": -1},
    )
    lines = mistakes(path)
    assert [line.removeprefix(f"{path}: ")[:60] for line in lines] == [
        "name: 'bakeoff' is not the file's name, 'mine'",
        "rounds: input should be a valid integer, not True",
        "training.epochs: input should be greater than 0, not -1",
        "training.lrr: unknown key; did you mean 'lr'?",
        "round: unknown key; did you mean 'rounds'?",
        f"methods: 'Surprise': no such file {configs}/methods"[:60],
        "evaluation.gates: 'Vine' is not among the methods; add it th",
        "evaluation.gates: 'flatGRPO_AA' is not among the methods; ad",
    ]


def test_mistakes_in_several_files_are_listed_at_once_with_their_files(configs):
    edit(configs / "envs/alfworld-long.yaml", turn_caps=3)
    edit(configs / "models/tiny.yaml", name="small", max_length="long")
    edit(configs / "methods/Vine.yaml", alpha=2)
    edit(configs / "methods/Progressive.yaml", training={"lr": -1})
    edit(configs / "methods/GiGPO.yaml", labl="x")
    lines = mistakes(configs / "studies/bakeoff.yaml", methods="flatGRPO,Vine,Progressive,GiGPO")
    assert [line.removeprefix(f"{configs}/").split(": ")[:2] for line in lines] == [
        ["envs/alfworld-long.yaml", "turn_caps"],
        ["models/tiny.yaml", "name"],
        ["models/tiny.yaml", "max_length"],
        ["methods/Vine.yaml", "alpha"],
        ["methods/Progressive.yaml", "training.lr"],
        ["methods/GiGPO.yaml", "labl"],
    ]


SEVERAL = {
    "training.lr=fast": "lr: input should be a valid number",
    "sft.epoch=3": "sft.epoch: unknown key; did you mean 'epochs'?",
    "foo=3": "foo: unknown key; known: ",
    "seeds=": "seeds=: a value was expected",
    "env.turn_cap=abc": "turn_cap: input should be a valid integer",
    "env.turn_capp=3": "env.turn_capp: unknown key; did you mean 'turn_cap'?",
    "model={max_length:": "model: {max_length:: not a value",
    "methods.flatGRPO.alfa=1": "methods.flatGRPO.alfa: unknown key; did you mean 'alpha'?",
    "methods.flatGRPO.alpha=2": "alpha: input should be less than or equal to 1, not 2",
    "methods.Vin.alpha=0.3": "methods.Vin.alpha: no method of the study's file; did you mean 'Vin",
    "methods.flatGRPO={alpha: 0.3}": "methods.flatGRPO: name a key of it, such as alpha",
    "methods.Vine.alpha=0.3": "methods.Vine.alpha: no method of the study's file; add it to `meth",
    "methods.Quick.alfa=1": "methods.Quick.alfa: unknown key; did you mean 'alpha'?",
    "axes.b.values=1,2": "axes.b: no such axis",
    "variants.Slow={of: flatGRPO}": "variants.Slow: no arm of this run reads it; its arms are",
}


def test_all_mistakes_of_the_command_line_are_listed_at_once(configs):
    """Vine is a method that the study smoke does not have."""
    path = configs / "studies/smoke.yaml"
    methods = ["flatGRPO", "SFTOnly", "LLMJudge", "Quick"]
    edit(path, methods=methods, smoke_wave=[], variants={"Quick": {"of": "flatGRPO"}})
    lines = mistakes(path, set=" ".join(SEVERAL))
    for typed, said in SEVERAL.items():
        assert [said in line for line in lines].count(True) == 1, typed
    typed = [line for line in lines if line.startswith("command line: ")]
    assert len(typed) == len(SEVERAL)
    # The gates of the file name arms that the test took away.
    assert all("evaluation." in line for line in lines if line not in typed)


def test_only_what_was_typed_is_the_command_lines(configs):
    path = configs / "studies/bakeoff.yaml"
    edit(configs / "methods/GiGPO.yaml", labl="x")
    edit(path, round=3)
    lines = mistakes(path, methods="flatGRPO,GiGPO,Nobody", rounds=0, **{"env.turn_cap": 0})
    assert [line.split(": ")[0] for line in lines if line.startswith("command line: ")] == (
        ["command line"] * 3
    )
    assert [line.split(": ")[0] for line in lines if not line.startswith("command line: ")] == [
        str(path),
        f"{configs}/methods/GiGPO.yaml",
    ]
