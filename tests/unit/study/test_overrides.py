"""Values on the command line: typed, merged into the study's file, and named if they are wrong."""

import shlex
import subprocess

import pytest
from places import PROJECT

from hgrpo.errors import UserError
from hgrpo.stages.comparison import comparison
from hgrpo.study.config import StudyConfig
from hgrpo.study.overrides import as_config, parse_overrides, read_assignments
from hgrpo.study.study import load_study

STUDY = PROJECT / "configs/studies/bakeoff.yaml"


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"seeds": "11,23 31"}, {"seeds": ["11", "23", "31"]}),
        ({"seeds": [7]}, {"seeds": [7]}),
        ({"seeds": 7}, {"seeds": ["7"]}),
        ({"training.lr": "0.5"}, {"training": {"lr": 0.5}}),
        (
            {"training": {"lr": "2", "kl": {"init": "0.1"}}},
            {"training": {"lr": 2, "kl": {"init": 0.1}}},
        ),
        ({"set": "training.lr=3 training.epochs=2"}, {"training": {"lr": 3, "epochs": 2}}),
        (
            {"evaluation.sft_temperatures": "0,0.5"},
            {"evaluation": {"sft_temperatures": ["0", "0.5"]}},
        ),
        ({"evaluation.sft_temperatures": "[0, 1]"}, {"evaluation": {"sft_temperatures": [0, 1]}}),
        ({"evaluation.endpoint": "{budget: 512}"}, {"evaluation": {"endpoint": {"budget": 512}}}),
        ({"truth": "null"}, {"truth": None}),
        ({"set": "description='two words'"}, {"description": "two words"}),
        (
            {"set": "training.lr=3  description='not rounds=2'\tseeds=1, 2"},
            {"training": {"lr": 3}, "description": "not rounds=2", "seeds": ["1", "2"]},
        ),
        (
            {"set": "evaluation.endpoint={budget: 512} rounds=2"},
            {"evaluation": {"endpoint": {"budget": 512}}, "rounds": 2},
        ),
        # What Snakemake makes of the text "evaluation.endpoint={budget: 512}".
        (
            {"set": {"evaluation.endpoint={budget": "512}"}},
            {"evaluation": {"endpoint": {"budget": 512}}},
        ),
        (
            {"variants.Slow": "{of: Vine, training: {lr: 1.0e-4}}", "variants.Few.alpha": 1},
            {"variants": {"Slow": {"of": "Vine", "training": {"lr": 1e-4}}, "Few": {"alpha": 1}}},
        ),
        ({"axes.kl.values": "0,0.05"}, {"axes": {"kl": {"values": ["0", "0.05"]}}}),
        ({"axes.kl.key": "training.lr"}, {"axes": {"kl": {"key": "training.lr"}}}),
        ({"set": None}, {}),
        ({}, {}),
    ],
)
def test_text_gets_the_type_of_its_key(overrides, expected):
    assert parse_overrides(overrides, StudyConfig) == expected


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"trainin.lr": 1}, "command line: trainin.lr: unknown key; did you mean 'training'?"),
        ({"set": "lr"}, "command line: set: expected KEY=VALUE, not 'lr'"),
        ({"set": "a=1 a=2"}, "command line: set: a: duplicate key"),
        ({"rounds": 1, "set": "rounds=2"}, "command line: set: rounds: duplicate key"),
        ({"set": "training.lr='1"}, "command line: training.lr: '1: not a valid YAML value"),
        ({"seeds": None}, "command line: seeds=: expected a value; "),
        ({"set": "training.lr="}, "command line: training.lr=: expected a value; "),
    ],
)
def test_a_mistake_names_the_key(overrides, message):
    with pytest.raises(UserError) as refused:
        parse_overrides(overrides, StudyConfig)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("words", [["lr"], ["=1"], ["a b=1"], ["a=1", "a=2"], ["study="]])
def test_words_that_assign_nothing_or_twice_are_refused(words):
    with pytest.raises(UserError):
        read_assignments(words)


def test_an_override_changes_one_key_and_keeps_its_neighbours():
    plain, changed = load_study(STUDY), load_study(STUDY, {"training.lr": "1e-4"})
    assert changed.config.training.lr == 1e-4
    assert (
        changed.config.training.model_copy(update={"lr": plain.config.training.lr})
        == plain.config.training
    )
    assert changed.overridden == {"training.lr": 1e-4}
    assert {t.lr for t in changed.training.values()} == {1e-4}


def test_arms_run_without_the_reference_and_another_may_be_named():
    some = load_study(STUDY, {"methods": "LLMJudge,Progressive"})
    assert not some.has_reference and list(some.methods) == ["LLMJudge", "Progressive"]
    other = load_study(STUDY, {"methods": "LLMJudge,Progressive", "reference": "Progressive"})
    assert other.has_reference
    for overrides, message in (
        ({"methods": "LLMJudge", "reference": "Nobody"}, "reference: 'Nobody': no such file"),
        ({"methods": "LLMJudge", "reference": "SFTOnly"}, "'SFTOnly' is not a trained method"),
        ({"reference": "GiGPO"}, "reference: 'GiGPO' is not among the methods"),
    ):
        with pytest.raises(UserError, match=message):
            load_study(STUDY, overrides)


def test_another_reference_drops_the_files_gates():
    assert load_study(STUDY, {"reference": "flatGRPO"}).config.evaluation.gates
    assert not load_study(STUDY, {"reference": "Vine"}).config.evaluation.gates
    gate = "[{arm: Vine, expect: above}]"
    study = load_study(STUDY, {"reference": "Progressive", "evaluation.gates": gate})
    assert [gate.arm for gate in study.config.evaluation.gates] == ["Vine"]


def test_an_arm_of_ones_own_joins_the_others_and_the_report_reads_it():
    plain = load_study(STUDY)
    study = load_study(STUDY, {"mine": "TurnLOO"})
    assert list(study.methods) == [*plain.methods, "TurnLOO"]
    assert comparison(study)["mine"] == ["TurnLOO"] == study.resolved()["mine"]
    assert "mine" not in comparison(plain) and "mine" not in plain.resolved()
    listed = load_study(STUDY, {"mine": "Vine", "methods": "flatGRPO,Vine"})
    assert list(listed.methods) == ["flatGRPO", "Vine"] and listed.config.mine == ["Vine"]
    two = load_study(STUDY, {"mine": "TurnLOO,Vine"})
    assert list(two.methods) == list(dict.fromkeys([*plain.methods, "TurnLOO", "Vine"]))
    variant = {"variants.Slow": "{of: Progressive, training: {lr: 1.0e-5}}", "mine": "Slow"}
    assert load_study(STUDY, variant).training["Slow"].lr == 1e-5
    for name in ("TurnL00", "A;B"):
        with pytest.raises(UserError, match=f"mine overridden: .*{name}"):
            load_study(STUDY, {"mine": name})


def test_words_reach_snakemake_without_a_dot_in_a_key():
    words = ["study=x", "training.lr=1e-4", "seeds=11,23", "set=rounds=3", "description=two words"]
    assert as_config(words) == [
        *("study=x", "seeds=11,23", "description=two words"),
        "set=rounds=3 training.lr=1e-4",
    ]
    assert as_config(["sft.adapter=a b"]) == ["set=sft.adapter=a b"]
    assert as_config(["rounds=2"]) == ["rounds=2"]


TEXTS = [
    "Answer: one  command, item #3 of {x}",
    'don\'t, and "do" a=b training.lr=2',
    "'quoted'",
    '"',
    "line one\nline two",
    "null",
    "[a]",
    "é 😀",
]


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_reaches_the_key_as_it_is(text):
    from snakemake.cli import parse_config

    from hgrpo.report.rerun import command, target_command

    study = {"name": "bakeoff"}
    overridden = {"description": text, "training.lr": 1e-4, "truth": None}
    expected = {"description": text, "training": {"lr": 1e-4}, "truth": None}
    (word,) = shlex.split(target_command("viewer", study, overridden))[-1:]
    assert parse_overrides(parse_config([word]), StudyConfig) == expected
    if "\n" not in text:  # no variable of make holds a line end
        words = shlex.split(command(study, overridden).replace("bakeoff", "-n plan", 1))
        done = subprocess.run(words, cwd=PROJECT, capture_output=True, encoding="utf-8", check=True)
        (word,) = [word for word in shlex.split(done.stdout) if word.startswith("set=")]
        assert parse_overrides(parse_config([word]), StudyConfig) == expected
        # `make plan` reads the words itself, and hands them on.
        assert parse_overrides(read_assignments([word]), StudyConfig) == expected
        (word,) = as_config([word])
        assert parse_overrides(parse_config([word]), StudyConfig) == expected
