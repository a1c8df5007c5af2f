"""Studies: every shipped one loads, every mistake is one line that names file and key."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from config_schemas import SECTIONS, schemas
from places import PROJECT
from stage_settings import stage_settings

from hgrpo.config.read import read_yaml, validate
from hgrpo.credit import kinds
from hgrpo.credit.kinds import CreditConfig
from hgrpo.errors import UserError
from hgrpo.games.kinds import load
from hgrpo.learning.method import MethodConfig
from hgrpo.policy.settings import ModelConfig
from hgrpo.stages.sections import environment_settings
from hgrpo.study.study import load_study

CONFIGS = PROJECT / "configs"
# Those of the sandbox are read by tests of their own.
FILES = sorted(path for path in CONFIGS.glob("*/*.yaml") if path.parent.name != "sandbox")
MODELS = [path for path in FILES if path.parent.name == "models"]


@pytest.fixture
def configs(tmp_path):
    """A copy of configs/ that a test may spoil."""
    return Path(shutil.copytree(CONFIGS, tmp_path / "configs"))


def edit(path: Path, /, **changes) -> None:
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_bytes()) | changes), encoding="utf-8")


def error_of(configs: Path, overrides=None) -> str:
    with pytest.raises(UserError) as caught:
        load_study(configs / "studies/bakeoff_plateau.yaml", overrides)
    return str(caught.value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_shipped_config_loads(path):
    if path.parent.name == "studies":
        assert load_study(path).config.name == path.stem
    else:
        data = read_yaml(path)
        kind = path.parent.name.removesuffix("s")
        if kind == "env":
            built = environment_settings(data, str(path))
        else:
            built = validate(SECTIONS[kind], data, str(path))
        assert built.model_fields_set == set(data)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_model_with_every_default_spelt_out_is_the_same_model(path):
    model = validate(ModelConfig, read_yaml(path), str(path))
    assert validate(ModelConfig, json.loads(model.model_dump_json()), str(path)) == model


def test_schemas_in_the_tree_are_those_of_the_models():
    shipped = {
        path.name: path.read_text(encoding="utf-8") for path in (CONFIGS / "schema").glob("*.json")
    }
    assert shipped == schemas(), "run `make schema`"


def test_the_bakeoff_compares_the_seven_arms():
    study = load_study(CONFIGS / "studies/bakeoff_plateau.yaml")
    assert study.config.reference == "flatGRPO"
    assert not study.methods["SFTOnly"].train
    assert {name: arm.alpha for name, arm in study.methods.items() if arm.train} == {
        "flatGRPO": 1.0,
        "LLMJudge": 0.5,
        "TurnRDV1": 0.5,
        "TurnRDV2": 0.5,
        "Progressive": 0.5,
        "RandomCredit": 0.5,
    }
    assert len({training.model_dump_json() for training in study.training.values()}) == 1


def test_a_gate_names_an_arm_of_the_study(configs):
    study = configs / "studies/bakeoff_plateau.yaml"
    for arm, message in (
        ("Progresive", "'Progresive' is not among the methods; did you mean 'Progressive'?"),
        ("flatGRPO", "flatGRPO is the reference itself"),
    ):
        edit(study, evaluation={"gates": [{"arm": arm, "expect": "above"}]})
        assert error_of(configs).endswith(f"evaluation.gates: {message}")
    edit(study, evaluation={"gates": [{"arm": "Progressive", "expect": "above"}]})
    # A run of fewer arms leaves the gate open.
    assert load_study(study, {"methods": "flatGRPO,LLMJudge"}).config.evaluation.gates


def test_a_pair_names_two_trained_arms_beside_the_reference(configs):
    study = configs / "studies/bakeoff_plateau.yaml"
    for arm, against, message in (
        ("Progresive", "TurnRDV2", "'Progresive' is not among the trained methods; did you mean"),
        ("SFTOnly", "TurnRDV2", "'SFTOnly' is not among the trained methods"),
        ("flatGRPO", "TurnRDV2", "flatGRPO is the reference; every arm is already compared"),
        ("TurnRDV2", "TurnRDV2", "`arm` and `against` must differ, but both are TurnRDV2"),
    ):
        edit(study, evaluation={"pairs": [{"arm": arm, "against": against}]})
        assert message in error_of(configs)
    edit(study, evaluation={"pairs": [{"arm": "Progressive", "against": "TurnRDV2"}]})
    assert load_study(study, {"methods": "flatGRPO,LLMJudge"}).config.evaluation.pairs
    # With another reference, the pair may hold the reference itself.
    assert not load_study(study, {"reference": "Progressive"}).config.evaluation.pairs


def test_a_rule_of_groups_is_refused_where_tokens_have_weights(configs):
    edit(configs / "methods/Progressive.yaml", objective={"rule": "TPO"}, alpha=1.0)
    study = configs / "studies/bakeoff_plateau.yaml"
    assert load_study(study).methods["Progressive"].objective.declared.eta == 1.0
    edit(study, training={"importance_cap": 2.0})
    assert "Progressive: objective.rule: TPO has trajectory-level weights" in error_of(configs)


def test_gradients_are_analysed_of_the_surrogate_alone():
    path = CONFIGS / "studies/sokoban_gradients.yaml"
    with pytest.raises(UserError, match=r"gradients: TPO has `objective\.rule: TPO`, but"):
        load_study(path, {"methods": "SFTOnly,GRPO,TPO"})


def test_a_budget_is_checked_against_every_arms_rounds(configs):
    edit(configs / "methods/Progressive.yaml", training={"tasks_per_step": 48})
    edit(configs / "studies/bakeoff_plateau.yaml", evaluation={"endpoint": {"budget": 2000}})
    assert error_of(configs).endswith(
        "evaluation.endpoint.budget: Progressive: a budget of 2,000 trajectories is less than the "
        "2,304 trajectories of the first round"
    )
    edit(configs / "studies/bakeoff_plateau.yaml", evaluation={"endpoint": {"budget": 7680}})
    study = load_study(configs / "studies/bakeoff_plateau.yaml")
    assert study.round_trajectories["Progressive"] == 6 * 48 * 8
    assert "SFTOnly" not in study.round_trajectories
    assert "of 2 rounds of training" in error_of(configs, {"rounds": 2})


@pytest.mark.parametrize("seeds", ["11,23", "11 23", " 11, 23 ", [11, 23], ("11", 23)])
def test_seeds_are_read_from_text_and_lists(configs, seeds):
    study = load_study(configs / "studies/bakeoff_plateau.yaml", {"seeds": seeds, "rounds": "7"})
    assert study.config.seeds == [11, 23]
    assert study.config.rounds == 7


def test_a_method_changes_only_the_training_keys_it_names(configs):
    edit(configs / "methods/Progressive.yaml", training={"lr": 0.001, "kl": {"init": 0.5}})
    study = load_study(configs / "studies/bakeoff_plateau.yaml")
    flat = study.training["flatGRPO"].model_dump()
    changed = study.training["Progressive"].model_dump()
    assert changed["lr"] == 0.001
    assert changed["kl"]["init"] == 0.5
    assert changed["kl"]["target"] == flat["kl"]["target"]
    assert {key for key in flat if flat[key] != changed[key]} == {"lr", "kl"}


# One for each check of a study as a whole, and for each way in which a file is read.
MISTAKES = [
    ("studies", {"sedes": [1]}, "sedes: unknown key; did you mean 'seeds'?"),
    ("studies", {"importance_cap": 2}, "importance_cap: unknown key; it belongs to training"),
    ("studies", {"training": {"kl": {"tarjet": 1}}}, "training.kl.tarjet: unknown key; did you"),
    ("studies", {"rounds": True}, "rounds: expected a number, not True"),
    ("studies", {"training": {"lr": float("inf")}}, "training.lr: input should be a f"),
    ("studies", {"seeds": [11, 11]}, "seeds: 11: duplicates; list each value once"),
    ("studies", {"seeds": []}, "seeds: list should have at least 1 item"),
    ("studies", {"reference": "SFTOnly"}, "reference: 'SFTOnly' is not a trained"),
    ("studies", {"reference": "PPO"}, "reference: 'PPO' is not among the methods"),
    ("studies", {"name": "other"}, "name: 'other' differs from the file name 'bakeoff_plateau'"),
    ("studies", {"evaluation": {"test_games": 10**6}}, "evaluation.test_games:"),
    ("studies", {"evaluation": {"temperatures": [0.7]}}, "evaluation.temperatures: 0 "),
    (
        "studies",
        {"evaluation": {"temperatures": [-1.0, 0]}},
        "evaluation.temperatures: expected distinct",
    ),
    (
        "studies",
        {"evaluation": {"endpoint": {"budget": 1535}}},
        "evaluation.endpoint.budget: flatGRPO: a budget of 1,535 trajectories is less than",
    ),
    (
        "studies",
        {"training": {"tasks_per_step": 4001}},
        "training.tasks_per_step: flatGRPO plays 4001 tasks a step, but the train panel of env",
    ),
    ("studies", {"training": {"rollouts_per_task": 1}}, "training.rollouts_per_task: 1: flatGRPO"),
    (
        "studies",
        {"training": {"dynamic_sampling": {}, "tasks_per_step": 4000}},
        "training.dynamic_sampling: flatGRPO plays 4000 tasks a step, but the train panel",
    ),
    (
        "studies",
        {"training": {"rollouts_per_task": 1, "stops": {"reward_collapse": {}}}},
        "training.stops.reward_collapse compares the trajectories of a group, so `rollouts_",
    ),
    ("studies", {"training": {"kl": {"form": "k1"}}}, "training.kl.form: k1: the expected gradi"),
    (
        "studies",
        {"training": {"kl": {"minimum": 2}}},
        "training.kl.minimum: 2 must not exceed maximum: 1",
    ),
    (
        "studies",
        {"training": {"minibatches": 257}},
        "training.minibatches: 257: a batch",
    ),
    ("studies", {"training": {"gae": {"gamma_high": 0.5}}}, "training.gae.gamma_high: 0.5 "),
    (
        "studies",
        {"rounds": 3, "training": {"stops": {"reward_collapse": {}}}},
        "training.stops.reward_collapse.window: 10: flatGRPO has 18 steps in total, but the rule",
    ),
    ("methods/Progressive", {"advantage": "gae"}, "advantage: gae computes advantages from"),
    ("methods/Progressive", {"credit": {"kind": "augur"}}, "credit.kind: unknown assigner"),
    ("methods/Progressive", {"credit": {"kind": "flat", "k": 1}}, "credit.k: unknown key; known:"),
    (
        "methods/TurnRDV2",
        {"credit": {"kind": "turnrd", "fit": {"epoch": 2}}},
        "credit.fit.epoch: unknown key; did you mean 'epochs'?",
    ),
    ("methods/LLMJudge", {"credit": {"kind": "judge"}}, "credit.model: required"),
    ("methods/flatGRPO", {"alpha": 0.5}, "alpha: credit.kind 'flat' requires 1.0, not 0.5: its"),
    ("methods/Progressive", {"training": {"learning": 1}}, "training.learning: unknown key"),
    ("models/tiny", {"path": "somewhere"}, "set exactly one of `tiny`, `path`"),
    ("models/tiny", {"system": "Be brief."}, "system: Be brief. has an effect only with"),
    ("models/tiny", {"lora": {"rank": 64}}, "lora.rank: 64 has an effect only with adapt: lora"),
    (
        "models/tiny",
        {"adapt": "lora", "lora": {"targets": ["q_proj", "lm_head"]}},
        "lora.targets: 'lm_head': an adapter on the head",
    ),
    ("envs/alfworld-laptop", {"turn_caps": 3}, "turn_caps: unknown key"),
]


@pytest.mark.parametrize(("file", "changes", "expected"), MISTAKES)
def test_a_mistake_is_one_line_naming_file_and_key(configs, file, changes, expected):
    path = configs / f"{file if '/' in file else 'studies/bakeoff_plateau'}.yaml"
    edit(path, **changes)
    message = error_of(configs)
    assert message.startswith(f"{path}: {expected}"), message
    assert "\n" not in message


def test_a_critic_that_warms_up_until_the_end_is_refused_but_not_in_a_first_look(configs):
    path = configs / "studies/sokoban.yaml"
    study = yaml.safe_load(path.read_bytes())
    study["training"]["critic"] = {"warmup_steps": 60}
    path.write_text(yaml.safe_dump(study), encoding="utf-8")
    steps = study["rounds"] * study["training"]["steps_per_round"]
    expected = f"training.critic.warmup_steps: 60: PPO has only {steps} steps in total"
    with pytest.raises(UserError, match=expected):
        load_study(path)
    load_study(path, {"rounds": 1})


def test_dynamic_sampling_does_not_keep_dead_groups(configs):
    changes = {"training": {"dynamic_sampling": {}}, "dead_groups": "keep"}
    path = configs / "methods/flatGRPO.yaml"
    edit(path, **changes)
    assert "training.dynamic_sampling: flatGRPO has dead_groups: keep" in error_of(configs)


def test_every_mistake_under_credit_is_a_line_with_its_value(configs):
    path = configs / "methods/TurnRDV2.yaml"
    edit(path, credit={"kind": "turnrd", "fit": {"lr": -1, "epochs": 0}, "modell": 3})
    assert error_of(configs).splitlines() == [
        f"{path}: credit.fit.epochs: input should be greater than 0, not 0",
        f"{path}: credit.fit.lr: input should be greater than 0, not -1",
        f"{path}: credit.modell: unknown key; did you mean 'model'?",
    ]


def test_what_may_be_a_judges_key_is_not_repeated(configs):
    edit(
        configs / "methods/LLMJudge.yaml",
        credit={"kind": "judge", "model": "gpt-4o-mini", "variant": "sk-secret-1234"},
    )
    message = error_of(configs)
    assert "credit.variant: input should be 'trajectory' or 'group'" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("method", "changes", "wrong"),
    [
        ("GiGPO", {"alpha": 0.5, "turn_norm": "position"}, ["alpha", "turn_norm"]),
        ("Counterfactual", {"turn_norm": "group", "alpha": 0.25}, ["turn_norm"]),
    ],
)
def test_keys_that_would_spoil_a_finished_advantage_are_named(configs, method, changes, wrong):
    path = configs / f"methods/{method}.yaml"
    edit(path, **changes)
    with pytest.raises(UserError) as caught:
        validate(MethodConfig, read_yaml(path), str(path))
    assert re.findall(r"(\w+): credit\.kind '\w+' requires", str(caught.value)) == wrong


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("env", "alfworld-lapdog", "did you mean 'alfworld-laptop'?"),
        ("model", "tny", "did you mean 'tiny'?"),
        ("methods", ["flatGRPO", "flatGPRO"], "did you mean 'flatGRPO'?"),
    ],
)
def test_a_missing_file_is_named_with_its_nearest_neighbour(configs, key, value, expected):
    edit(configs / "studies/bakeoff_plateau.yaml", **{key: value})
    message = error_of(configs)
    name = value if isinstance(value, str) else value[-1]
    assert f"bakeoff_plateau.yaml: {key}: '{name}': no such file" in message
    assert message.endswith(expected)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"seed": 1}, "command line: seed: unknown key; did you mean 'seeds'?"),
        ({"rounds": -2}, "with rounds overridden: rounds: input should be greater"),
        ({"seeds": "a"}, "with seeds overridden: seeds: input should be a valid integer"),
        ({"mine": "flatGRPO"}, "with mine overridden: mine: flatGRPO is the reference; list"),
        ({"methods": "flatGRPO,QQQ"}, "with methods overridden: methods: 'QQQ': no such file"),
    ],
)
def test_a_mistaken_override_is_named_as_one(configs, overrides, expected):
    assert expected in error_of(configs, overrides)


def test_a_mistake_that_the_file_makes_alone_is_not_blamed_on_the_command_line(configs):
    path = configs / "studies/bakeoff_plateau.yaml"
    games = {"evaluation.test_games": "99999"}
    mistake = "evaluation.test_games: 99999 games requested, but the test panel"
    assert error_of(configs, games).startswith(
        f"command line: {path} with evaluation overridden: {mistake}"
    )
    edit(path, rounds=None)
    for overrides in ({}, games):
        message = error_of(configs, overrides)
        assert message.startswith(f"{path}"), message
        assert "rounds: input should be a valid integer, but it is empty" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: bakeoff\nname: twice\n", ":2: duplicate key 'name'"),
        ("name: bakeoff\nseeds: [011]\n", ":2: 011: YAML reads this as 9"),
        ("rounds: 1:30\n", ":1: 1:30: YAML reads this as 90"),
        ("seeds: [11\n", ": "),
        ("- a\n- b\n", ": expected a mapping, not list"),
        ("", ": expected a mapping, not an empty file"),
    ],
)
def test_a_file_that_yaml_reads_as_something_else_is_named(configs, text, expected):
    path = configs / "studies/bakeoff_plateau.yaml"
    path.write_text(text, encoding="utf-8")
    message = error_of(configs)
    assert message.startswith(f"{path}")
    assert expected in message
    assert "\n" not in message


def test_a_judge_for_an_environment_without_a_judge_text_is_refused(configs, monkeypatch):
    environment = type(load("alfworld"))
    monkeypatch.delattr(environment, "judge_text")
    assert error_of(configs).endswith(
        "bakeoff_plateau.yaml: methods: LLMJudge: credit.kind 'judge' requires `judge_text` in "
        "hgrpo/games/alfworld/__init__.py"
    )


def test_a_missing_study_is_named(configs):
    with pytest.raises(UserError, match=r"bakeof\.yaml: no such file; did you mean 'bakeoff'\?"):
        load_study(configs / "studies/bakeof.yaml")


def test_a_stage_sees_only_its_own_settings(configs):
    study = load_study(configs / "studies/bakeoff_plateau.yaml")
    arm = stage_settings(study, "rl_round", "Progressive")
    assert set(arm) == {"env", "model", "engine", "training", "method"}
    assert "label" not in arm["method"]
    assert "expert" not in arm["env"]
    evaluation = stage_settings(study, "evaluate", "Progressive")["evaluation"]
    assert not {"endpoint", "score", "thresholds", "confidence"} & set(evaluation)
    assert "sft_temperatures" not in evaluation
    untrained = stage_settings(study, "evaluate", "SFTOnly")
    assert untrained["train"] is False
    assert 0.5 in untrained["evaluation"]["sft_temperatures"]
    assert stage_settings(study, "expert")["env"]["expert"]["trajectories"] > 0
    with pytest.raises(KeyError):
        stage_settings(study, "nonsense")


def test_a_variant_is_a_method_with_some_keys_changed(configs):
    edit(
        configs / "studies/bakeoff_plateau.yaml",
        methods=["flatGRPO", "Half", "Slow"],
        variants={
            "Half": {"of": "Progressive", "alpha": 0.25, "label": "half"},
            "Slow": {"of": "flatGRPO", "training": {"lr": 1e-5}},
        },
    )
    study = load_study(configs / "studies/bakeoff_plateau.yaml")
    assert study.methods["Half"].credit.kind == "progress"
    assert (study.methods["Half"].name, study.methods["Half"].alpha) == ("Half", 0.25)
    assert study.training["Slow"].lr == 1e-5
    assert study.training["Half"] == study.training["flatGRPO"]


@pytest.mark.parametrize(
    "variant, expected",
    [
        ({"of": "Progressiv"}, "variants.Half.of: 'Progressiv': no such file"),
        ({"of": "Progressive", "alpah": 1}, "variants.Half: alpah: unknown key; did you mean"),
        (
            {"of": "Progressive", "name": "x"},
            "variants.Half.name: not allowed; a variant's name is its key",
        ),
        ({"alpha": 1}, "variants.Half.of: required"),
        (
            {"of": "Progressive", "training": {"l": 1}},
            "variants.Half: training.l: unknown key",
        ),
    ],
)
def test_a_mistake_in_a_variant_is_named(configs, variant, expected):
    edit(
        configs / "studies/bakeoff_plateau.yaml",
        methods=["flatGRPO", "Half"],
        variants={"Half": variant},
    )
    message = error_of(configs)
    assert message.startswith(f"{configs / 'studies/bakeoff_plateau.yaml'}: {expected}"), message


def test_a_variant_does_not_hide_a_method(configs):
    path = configs / "studies/bakeoff_plateau.yaml"
    edit(path, variants={"Progressive": {"of": "flatGRPO"}})
    method = configs / "methods/Progressive.yaml"
    expected = f"{path}: variants.Progressive: {method} already has this name"
    assert error_of(configs).startswith(expected)


def test_a_variant_of_another_kind_starts_without_the_old_kinds_settings(configs):
    variants = {
        "Same": {"of": "TurnRDV2", "credit": {"fit": {"epochs": 5}}},
        "Named": {"of": "TurnRDV2", "credit": {"kind": "turnrd", "fit": {"epochs": 5}}},
        "Other": {"of": "TurnRDV2", "credit": {"kind": "progress"}},
    }
    edit(
        configs / "studies/bakeoff_plateau.yaml", methods=["flatGRPO", *variants], variants=variants
    )
    methods = load_study(configs / "studies/bakeoff_plateau.yaml").methods
    assert methods["Same"].credit == methods["Named"].credit
    assert methods["Same"].credit.settings["fit"]["rank_weight"] == 0.1
    other = {"kind": "progress", "spread": "turns", "to_go": None}
    assert methods["Other"].credit.model_dump() == other
    assert methods["Other"].alpha == 0.5


# Kinds whose settings fix alpha, so that a method need not state it; the others must.
FIXED = {"flat": 1.0}
WRONG_BY_DEFAULT = {"entropy", "state_graph"}
NEEDED = {
    "judge": {"model": "offline-rubric", "base_url": "service"},
    "entropy": {"rule": "chosen"},
}


@pytest.mark.parametrize("kind", kinds.known())
def test_every_kind_of_credit_states_alpha_or_demands_it(kind):
    section = {"name": "Mine", "credit": {"kind": kind} | NEEDED.get(kind, {})}
    if "turn_norm" in CreditConfig(**section["credit"]).declared.demands:
        section["turn_norm"] = "none"
    if kind in FIXED:
        assert validate(MethodConfig, section, "Mine").alpha == FIXED[kind]
        return
    with pytest.raises(UserError) as caught:
        validate(MethodConfig, section, "Mine")
    message = str(caught.value)
    assert message.startswith("Mine: alpha: ") and "\n" not in message
    if kind in WRONG_BY_DEFAULT:
        assert f"credit.kind {kind!r} requires 0.0, not 1.0" in message
        return
    assert f"required with credit.kind {kind!r}" in message and "`alpha: 0.5`" in message
    # A control may ignore its credit, but a caution says so.
    for alpha, caution in ((1.0, "alpha is 1, so its credit"), (0.5, "")):
        method = validate(MethodConfig, section | {"alpha": alpha}, "Mine")
        assert method.credit_caution(flat=False).startswith(caution)
        assert bool(method.credit_caution(flat=False)) == bool(caution)


@pytest.mark.parametrize(
    "variant",
    [
        {"of": "flatGRPO", "credit": {"kind": "progress"}},
        {"of": "PPO", "advantage": "group", "credit": {"kind": "progress"}},
    ],
    ids=lambda variant: variant["of"],
)
def test_a_variant_does_not_inherit_an_alpha_that_its_credit_did_not_choose(configs, variant):
    study = configs / "studies/bakeoff_plateau.yaml"
    overrides = {"methods": ["flatGRPO", "Mine"], "variants": {"Mine": variant}}
    assert "variants.Mine: alpha: required with" in error_of(configs, overrides)
    overrides["variants"] = {"Mine": variant | {"alpha": 0.25}}
    assert load_study(study, overrides).methods["Mine"].alpha == 0.25
    edit(study, **overrides | {"variants": {"Mine": variant}})
    assert "variants.Mine: alpha: required with" in error_of(configs)


@pytest.mark.parametrize(
    ("name", "flat", "reason"),
    [
        ("Progressive", True, "constant after turn_norm: position"),
        ("GiGPO", True, "its credit is the same for all turns of a trajectory"),
        ("Progressive", False, ""),
        *((name, True, "") for name in ("flatGRPO", "ZeroCredit", "RLOO", "PPO", "SFTOnly")),
    ],
)
def test_flat_credit_is_named_where_turns_were_to_differ(name, flat, reason):
    path = CONFIGS / f"methods/{name}.yaml"
    caution = validate(MethodConfig, read_yaml(path), str(path)).credit_caution(flat)
    assert reason in caution and bool(reason) == bool(caution)


@pytest.mark.parametrize("label", ["Progressive", "flat GRPO"])
def test_two_arms_under_one_label_are_refused(configs, label):
    path = configs / "studies/bakeoff_plateau.yaml"
    variants = {"P25": {"of": "Progressive", "alpha": 0.25, "label": label}}
    edit(path, methods=["flatGRPO", "Progressive", "P25"], variants=variants)
    other = "Progressive" if label == "Progressive" else "flatGRPO"
    expected = f"{path}: methods: {other} and P25 have the same label {label!r}"
    assert error_of(configs).startswith(expected)


@pytest.mark.parametrize("cut", ["words"])
def test_a_cut_of_another_environments_text_is_refused(configs, cut):
    path = configs / "models/tiny.yaml"
    tiny = yaml.safe_load(path.read_bytes())["tiny"]
    edit(path, tiny=tiny | {"cut": "phrases"})
    assert load_study(configs / "studies/bakeoff_plateau.yaml").model.tiny.cut == "phrases"
    edit(path, tiny=tiny | {"cut": cut})
    expected = f"configs/models/tiny.yaml: tiny.cut: {cut!r}: the environment alfworld requires"
    assert error_of(configs).startswith(expected)
