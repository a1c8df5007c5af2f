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

from hgrpo.config.canonical import as_json
from hgrpo.config.read import did_you_mean, read_yaml, validate
from hgrpo.credit import kinds
from hgrpo.credit.section import CreditConfig
from hgrpo.envs.kinds import environment_settings, load
from hgrpo.errors import UserError
from hgrpo.learning.method import MethodConfig
from hgrpo.policy.settings import ModelConfig
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
    for arm, said in (
        ("Progresive", "'Progresive' is not among the methods; did you mean 'Progressive'?"),
        ("flatGRPO", "flatGRPO is the reference itself"),
    ):
        edit(study, evaluation={"gates": [{"arm": arm, "expect": "above"}]})
        assert error_of(configs).endswith(f"evaluation.gates: {said}")
    edit(study, evaluation={"gates": [{"arm": "Progressive", "expect": "above"}]})
    # A run of fewer arms leaves the gate open.
    assert load_study(study, {"methods": "flatGRPO,LLMJudge"}).config.evaluation.gates


def test_a_pair_names_two_trained_arms_beside_the_reference(configs):
    study = configs / "studies/bakeoff_plateau.yaml"
    for arm, against, said in (
        ("Progresive", "TurnRDV2", "'Progresive' is not among the trained methods; did you mean"),
        ("SFTOnly", "TurnRDV2", "'SFTOnly' is not among the trained methods"),
        ("flatGRPO", "TurnRDV2", "flatGRPO is the reference, with which all arms are compared"),
        ("TurnRDV2", "TurnRDV2", "TurnRDV2 is the arm itself"),
    ):
        edit(study, evaluation={"pairs": [{"arm": arm, "against": against}]})
        assert said in error_of(configs)
    edit(study, evaluation={"pairs": [{"arm": "Progressive", "against": "TurnRDV2"}]})
    assert load_study(study, {"methods": "flatGRPO,LLMJudge"}).config.evaluation.pairs
    # With another reference, the pair may hold the reference itself.
    assert not load_study(study, {"reference": "Progressive"}).config.evaluation.pairs


def test_a_rule_of_groups_is_refused_where_tokens_have_weights(configs):
    edit(configs / "methods/Progressive.yaml", objective={"rule": "TPO"}, alpha=1.0)
    study = configs / "studies/bakeoff_plateau.yaml"
    assert load_study(study).methods["Progressive"].objective.declared.eta == 1.0
    edit(study, training={"importance_cap": 2.0})
    assert "Progressive: objective.rule: TPO weighs whole trajectories" in error_of(configs)


def test_gradients_are_analysed_of_the_surrogate_alone():
    path = CONFIGS / "studies/sokoban_gradients.yaml"
    with pytest.raises(UserError, match=r"gradients: TPO trains with objective\.rule: TPO, but"):
        load_study(path, {"methods": "SFTOnly,GRPO,TPO"})


def test_a_budget_is_checked_against_every_arms_rounds(configs):
    edit(configs / "methods/Progressive.yaml", training={"tasks_per_step": 48})
    edit(configs / "studies/bakeoff_plateau.yaml", evaluation={"endpoint": {"budget": 2000}})
    assert error_of(configs).endswith(
        "evaluation.endpoint.budget: Progressive: 2,000 trajectories are fewer than its first "
        "round's 2,304"
    )
    edit(configs / "studies/bakeoff_plateau.yaml", evaluation={"endpoint": {"budget": 7680}})
    study = load_study(configs / "studies/bakeoff_plateau.yaml")
    assert study.round_trajectories["Progressive"] == 6 * 48 * 8
    assert "SFTOnly" not in study.round_trajectories
    assert "more than it trains on in 2 rounds" in error_of(configs, {"rounds": 2})


def test_studies_that_were_published_before_the_default_keep_their_endpoint():
    earlier = (
        "alpha_sweep bakeoff_plateau bakeoff_plateau_plus cf_supervision tier2_factorial webshop"
    )
    for name in earlier.split():
        stated = read_yaml(CONFIGS / f"studies/{name}.yaml")["evaluation"]
        assert stated["endpoint"] == "last_round", name
    for name in ("bakeoff", "smoke", "calibration_easy", "calibration_hard"):
        assert load_study(CONFIGS / f"studies/{name}.yaml").config.evaluation.endpoint == "area"


@pytest.mark.parametrize("seeds", ["11,23", "11 23", " 11, 23 ", [11, 23], ("11", 23)])
def test_seeds_are_read_from_text_and_lists(configs, seeds):
    study = load_study(configs / "studies/bakeoff_plateau.yaml", {"seeds": seeds, "rounds": "7"})
    assert study.config.seeds == [11, 23]
    assert study.config.rounds == 7


def test_one_seed_is_a_number_on_the_command_line(configs):
    assert load_study(configs / "studies/bakeoff_plateau.yaml", {"seeds": 31}).config.seeds == [31]


def test_a_method_changes_only_the_training_keys_it_names(configs):
    edit(configs / "methods/Progressive.yaml", training={"lr": 0.001, "kl": {"init": 0.5}})
    study = load_study(configs / "studies/bakeoff_plateau.yaml")
    flat = study.training["flatGRPO"].model_dump()
    changed = study.training["Progressive"].model_dump()
    assert changed["lr"] == 0.001
    assert changed["kl"]["init"] == 0.5
    assert changed["kl"]["target"] == flat["kl"]["target"]
    assert {key for key in flat if flat[key] != changed[key]} == {"lr", "kl"}


@pytest.mark.parametrize(
    ("file", "changes", "expected"),
    [
        ("studies/bakeoff_plateau", {"sedes": [1]}, "sedes: unknown key; did you mean 'seeds'?"),
        (
            "studies/bakeoff_plateau",
            {"importance_cap": 2},
            "importance_cap: unknown key; it belongs to training",
        ),
        (
            "studies/bakeoff_plateau",
            {"rounds": -1},
            "rounds: input should be greater than or equal to 1",
        ),
        ("studies/bakeoff_plateau", {"rounds": "many"}, "rounds: input should be a valid integer"),
        ("studies/bakeoff_plateau", {"training": {"leer": 1}}, "training.leer: unknown key"),
        (
            "studies/bakeoff_plateau",
            {"training": {"kl": {"tarjet": 1}}},
            "training.kl.tarjet: unknown key; did you mean 'target'?",
        ),
        (
            "studies/bakeoff_plateau",
            {"seeds": [11, 11]},
            "seeds: 11 is listed twice; each was expected once",
        ),
        (
            "studies/bakeoff_plateau",
            {"methods": ["flatGRPO", "GiGPO", "GiGPO"]},
            "methods: GiGPO is listed twice",
        ),
        ("methods/Progressive", {"alpha": True}, "alpha: input should be a valid number, not True"),
        (
            "studies/bakeoff_plateau",
            {"rounds": True},
            "rounds: input should be a valid integer, not True",
        ),
        (
            "studies/bakeoff_plateau",
            {"seeds": [11, True]},
            "seeds: input should be a valid integer, not True",
        ),
        (
            "studies/bakeoff_plateau",
            {"evaluation": {"temperatures": [0.0, True]}},
            "evaluation.temperatures: input should be a valid number, not True",
        ),
        (
            "models/tiny",
            {"lora": {"rank": True}},
            "lora.rank: input should be a valid integer, not True",
        ),
        (
            "studies/bakeoff_plateau",
            {"seeds": [11, -1]},
            "seeds: input should be greater than or equal to 0, not -1",
        ),
        ("studies/bakeoff_plateau", {"seeds": []}, "seeds: list should have at least 1 item"),
        (
            "studies/bakeoff_plateau",
            {"reference": "SFTOnly"},
            "reference: 'SFTOnly' is not a trained",
        ),
        (
            "studies/bakeoff_plateau",
            {"reference": "PPO"},
            "reference: 'PPO' is not among the methods",
        ),
        (
            "studies/bakeoff_plateau",
            {"name": "other"},
            "name: 'other' is not the file's name, 'bakeoff_plateau'",
        ),
        (
            "studies/bakeoff_plateau",
            {"evaluation": {"test_games": 10**6}},
            "evaluation.test_games:",
        ),
        (
            "studies/bakeoff_plateau",
            {"evaluation": {"temperatures": [0.7]}},
            "evaluation.temperatures: 0 ",
        ),
        (
            "studies/bakeoff_plateau",
            {"evaluation": {"sft_temperatures": []}},
            "evaluation.sft_temperatures: 0 (greedy) is missing",
        ),
        (
            "studies/bakeoff_plateau",
            {"evaluation": {"temperatures": [-1.0, 0]}},
            "evaluation.temperatures: different temperatures, none below 0",
        ),
        (
            "studies/bakeoff_plateau",
            {"evaluation": {"endpoint": {"budget": 1535}}},
            "evaluation.endpoint.budget: flatGRPO: 1,535 trajectories are fewer than its first "
            "round's 1,536",
        ),
        (
            "studies/bakeoff_plateau",
            {"evaluation": {"endpoint": {"budget": 7681}}},
            "evaluation.endpoint.budget: flatGRPO: 7,681 trajectories are more than it trains on "
            "in 5 rounds, 7,680",
        ),
        (
            "studies/bakeoff_plateau",
            {"evaluation": {"endpoint": "best_round"}},
            "evaluation.endpoint: area",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"steps_per_round": 0}},
            "training.steps_per_round:",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"tasks_per_step": 4001}},
            "training.tasks_per_step: flatGRPO plays 4001 tasks a step, but the train panel of env "
            "'alfworld-laptop' has 4000",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"rollouts_per_task": 0}},
            "training.rollouts_per_task:",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"betas": [1.5, 0.9]}},
            "training.betas: input should",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"lr": float("inf")}},
            "training.lr: input should be a f",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"rollouts_per_task": 1}},
            "training.rollouts_per_task: 1: flatGRPO compares rollouts of a task",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"dynamic_sampling": {"most_batches": 1}}},
            "training.dynamic_sampling.most_batches: input should be greater than 1",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"dynamic_sampling": {}, "tasks_per_step": 4000}},
            "training.dynamic_sampling: flatGRPO plays 4000 tasks a step, and the train panel",
        ),
        (
            "studies/bakeoff_plateau",
            {"evaluation": {"sft_temperatures": [0.0, float("nan")]}},
            "evaluation.sft_temperatures: input should be a finite number",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"filter": {"value": 1.5}}},
            "training.filter.value: 1.5: strategy top_p takes a share above 0 and at most 1",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"rollouts_per_task": 1, "filter": {"score": "deviation"}}},
            "training.filter.score: deviation compares the trajectories of a group, and "
            "rollouts_per_task is 1",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"rollouts_per_task": 1, "stops": {"reward_collapse": {}}}},
            "training.stops.reward_collapse: the trajectories of a group are compared, and "
            "rollouts_per_task is 1",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"kl": {"form": "k1"}}},
            "training.kl.form: k1: the expected gradient of log p - log p_ref does not depend on",
        ),
        (
            "methods/Progressive",
            {"advantage": "gae"},
            "advantage: gae takes the turns' credit from the critic, so credit.kind: progress with "
            "alpha: 0.5 would not be used; leave both out",
        ),
        ("methods/Progressive", {"alpha": 1.5}, "alpha: input should be less than or equal to 1"),
        (
            "methods/Progressive",
            {"credit": {"kind": "augur"}},
            "credit.kind: no credit assigner",
        ),
        (
            "methods/Progressive",
            {"credit": {"kind": "flat", "k": 1}},
            "credit.k: unknown key; known: kind",
        ),
        ("methods/Progressive", {"credit": {"knd": "flat"}}, "credit.knd: unknown key; did you"),
        (
            "methods/TurnRDV2",
            {"credit": {"kind": "turnrd", "fit": {"epoch": 2}}},
            "credit.fit.epoch: unknown key; did you mean 'epochs'?",
        ),
        (
            "methods/TurnRDV2",
            {"credit": {"kind": "turnrd", "fit": {"warmup_steps": 3}}},
            "credit.fit.warmup_steps: 3 is read only with schedule: warmup_cosine",
        ),
        (
            "methods/Progressive",
            {
                "credit": {
                    "kind": "state_graph",
                    "terms": [{"value": "none", "credit": "traj", "scop": "task"}],
                }
            },
            "credit.terms.0.scop: unknown key; did you mean 'scope'?",
        ),
        ("methods/LLMJudge", {"credit": {"kind": "judge"}}, "credit.model: required"),
        ("methods/flatGRPO", {"alpha": 0}, "alpha: credit.kind 'flat' needs 1.0, not 0.0: its"),
        ("methods/flatGRPO", {"alpha": 0.5}, "alpha: credit.kind 'flat' needs 1.0, not 0.5: its"),
        ("methods/Progressive", {"training": {"learning": 1}}, "training.learning: unknown key"),
        ("methods/Progressive", {"name": "Progress"}, "name: 'Progress' is not the file's name"),
        ("models/tiny", {"path": "somewhere"}, "tiny: give exactly one of `tiny`, `path`"),
        ("models/tiny", {"tiny": None}, "tiny: give exactly one of `tiny`, `path` and `package`"),
        ("models/tiny", {"system": "Be brief."}, "system: Be brief. is read only with"),
        ("models/tiny", {"lora": {"rank": 64}}, "lora.rank: 64 is read only with adapt: lora"),
        (
            "models/tiny",
            {"lora": {"targets": ["v_proj"]}},
            "lora.targets: ['v_proj'] is read only with adapt: lora",
        ),
        ("models/tiny", {"adapt": "lora", "lora": {"targets": []}}, "lora.targets: list should"),
        (
            "models/tiny",
            {"adapt": "lora", "lora": {"targets": ["q_proj", "lm_head"]}},
            "lora.targets: 'lm_head': the head has no adapter",
        ),
        ("models/tiny", {"tiny": None, "path": ""}, "path: string should have at least 1"),
        (
            "studies/bakeoff_plateau",
            {"training": {"minibatches": 257}},
            "training.minibatches: 257: a batch of flatGRPO has 256 trajectories",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"minibatch_trajectories": 300}},
            "training.minibatch_trajectories: 300: a batch of flatGRPO has 256 trajectories",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"gae": {"gamma_high": 0.5}}},
            "training.gae.gamma_high: 0.5 is read only by arms with advantage: bi_level_gae",
        ),
        (
            "studies/bakeoff_plateau",
            {"training": {"gae": {"truncation": "bootstrap"}}},
            "training.gae.truncation: bootstrap is read only by arms with advantage: bi_level",
        ),
        (
            "studies/bakeoff_plateau",
            {"rounds": 3, "training": {"stops": {"reward_collapse": {}}}},
            "training.stops.reward_collapse.window: 10: flatGRPO has 18 steps in all, and the rule",
        ),
        ("models/tiny", {"tiny": {"layer": 1}}, "tiny.layer: unknown key; did you mean 'layers'?"),
        ("envs/alfworld-laptop", {"turn_caps": 3}, "turn_caps: unknown key"),
    ],
)
def test_a_mistake_is_one_line_naming_file_and_key(configs, file, changes, expected):
    path = configs / f"{file}.yaml"
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
    expected = f"training.critic.warmup_steps: 60: PPO has {steps} steps in all"
    with pytest.raises(UserError, match=expected):
        load_study(path)
    load_study(path, {"rounds": 1})


def test_dynamic_sampling_does_not_keep_dead_groups(configs):
    changes = {"training": {"dynamic_sampling": {}}, "dead_groups": "keep"}
    path = configs / "methods/flatGRPO.yaml"
    edit(path, **changes)
    expected = f"{path}: training.dynamic_sampling: flatGRPO has dead_groups: keep"
    assert error_of(configs).startswith(expected)


def test_two_mistakes_are_two_lines(configs):
    edit(configs / "studies/bakeoff_plateau.yaml", rounds=0, colour="blue")
    assert len(error_of(configs).splitlines()) == 2


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
        ("GiGPO", {"group_norm": "mean"}, ["group_norm"]),
        ("Counterfactual", {"turn_norm": "position"}, ["turn_norm"]),
        ("Counterfactual", {"turn_norm": "group", "alpha": 0.25}, ["turn_norm"]),
    ],
)
def test_keys_that_would_spoil_a_finished_advantage_are_named(configs, method, changes, wrong):
    path = configs / f"methods/{method}.yaml"
    edit(path, **changes)
    with pytest.raises(UserError) as caught:
        validate(MethodConfig, read_yaml(path), str(path))
    found = re.findall(r"(\w+): credit\.kind '\w+' needs", str(caught.value))
    assert found == wrong


def test_an_arm_that_is_not_trained_has_no_credit_to_suit(configs):
    edit(configs / "methods/SFTOnly.yaml", alpha=0.5)
    assert load_study(configs / "studies/bakeoff_plateau.yaml").methods["SFTOnly"].alpha == 0.5


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
    wanted = value if isinstance(value, str) else value[-1]
    assert f"bakeoff_plateau.yaml: {key}: '{wanted}': no such file" in message
    assert message.endswith(expected)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"seed": 1}, "command line: seed: unknown key; did you mean 'seeds'?"),
        ({"rounds": -2}, "with rounds overridden: rounds: input should be greater"),
        ({"seeds": "a"}, "with seeds overridden: seeds: input should be a valid integer"),
        ({"mine": "flatGRPO"}, "with mine overridden: mine: flatGRPO is the reference; name"),
        ({"methods": "flatGRPO,QQQ"}, "with methods overridden: methods: 'QQQ': no such file"),
    ],
)
def test_a_mistaken_override_is_named_as_one(configs, overrides, expected):
    assert expected in error_of(configs, overrides)


def test_a_mistake_that_the_file_makes_alone_is_not_blamed_on_the_command_line(configs):
    path = configs / "studies/bakeoff_plateau.yaml"
    games = {"evaluation.test_games": "99999"}
    wanted = "evaluation.test_games: 99999 games are wanted, but the test panel"
    assert error_of(configs, games).startswith(
        f"command line: {path} with evaluation overridden: {wanted}"
    )
    edit(path, rounds=None)
    for overrides in ({}, games):
        message = error_of(configs, overrides)
        assert message.startswith(f"{path}"), message
        assert "rounds: input should be a valid integer, but it is empty" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: bakeoff\nname: twice\n", ":2: key 'name' stands twice"),
        ("name: bakeoff\nseeds: [011]\n", ":2: 011: YAML reads this as 9"),
        ("rounds: 1:30\n", ":1: 1:30: YAML reads this as 90"),
        ("seeds: [11\n", ": "),
        ("- a\n- b\n", ": a mapping was expected, not list"),
        ("", ": a mapping was expected, not an empty file"),
    ],
)
def test_a_file_that_yaml_reads_as_something_else_is_named(configs, text, expected):
    path = configs / "studies/bakeoff_plateau.yaml"
    path.write_text(text, encoding="utf-8")
    message = error_of(configs)
    assert message.startswith(f"{path}")
    assert expected in message
    assert "\n" not in message


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("-7", -7), ("0x1f", 31), ("1_000", 1000)])
def test_numbers_that_everybody_reads_alike_are_read(tmp_path, text, value):
    (tmp_path / "f.yaml").write_text(f"a: {text}\n", encoding="utf-8")
    assert read_yaml(tmp_path / "f.yaml") == {"a": value}


def test_a_judge_for_an_environment_without_a_judge_text_is_refused(configs, monkeypatch):
    environment = type(load("alfworld"))
    monkeypatch.delattr(environment, "judge_text")
    assert error_of(configs).endswith(
        "bakeoff_plateau.yaml: methods: LLMJudge: credit.kind 'judge' needs `judge_text` in "
        "hgrpo/envs/alfworld/__init__.py"
    )


def test_a_missing_study_is_named(configs):
    with pytest.raises(UserError, match=r"bakeof\.yaml: no such file; did you mean 'bakeoff'\?"):
        load_study(configs / "studies/bakeof.yaml")


def test_did_you_mean_lists_what_is_known_when_nothing_is_near():
    assert did_you_mean("zzz", ["b", "a"]) == "; known: a, b"
    assert did_you_mean("zzz", []) == ""


def test_stage_settings_are_plain_and_sorted(configs):
    study = load_study(configs / "studies/bakeoff_plateau.yaml")
    for stage in ("study_config", "assets", "expert", "base", "sft", "merge", "figures", "report"):
        text = as_json(stage_settings(study, stage))
        assert as_json(json.loads(text)) == text
    assert json.loads(as_json(study.resolved())) == study.resolved()


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
        ({"of": "Progressive", "name": "x"}, "variants.Half.name: a variant's name is its key"),
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
    expected = f"{path}: variants.Progressive: {method} is a method of that name"
    assert error_of(configs).startswith(expected)


def test_a_mistake_in_a_variant_that_no_arm_is_yet_is_named(configs):
    path = configs / "studies/bakeoff_plateau.yaml"
    half = {"of": "Progressive", "alpah": 1}
    edit(path, methods=["flatGRPO"], variants={"Half": half})
    assert error_of(configs).startswith(f"{path}: variants.Half: alpah: unknown key")
    edit(path, variants={"Half": {"of": "Progressive", "training": {"l": 1}}})
    assert error_of(configs).startswith(f"{path}: variants.Half: training.l: unknown key")
    edit(path, variants={"Half": {"of": "Progressive", "alpha": 0.25}})
    study = load_study(path)
    assert list(study.methods) == list(study.training) == ["flatGRPO"]


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
def test_every_kind_of_credit_states_alpha_or_demands_it(configs, kind):
    path = configs / "methods/Mine.yaml"
    method = {"name": "Mine", "credit": {"kind": kind} | NEEDED.get(kind, {})}
    if "turn_norm" in CreditConfig(**method["credit"]).declared.demands:
        method["turn_norm"] = "none"
    path.write_text(yaml.safe_dump(method), encoding="utf-8")
    world = "chores-eight" if kind in ("oracle", "exact") else "alfworld-laptop"
    edit(configs / "studies/bakeoff_plateau.yaml", env=world, methods=["flatGRPO", "Mine"])
    if kind in FIXED:
        study = load_study(configs / "studies/bakeoff_plateau.yaml")
        assert study.methods["Mine"].alpha == FIXED[kind]
        return
    message = error_of(configs)
    assert message.startswith(f"{path}: alpha: ") and "\n" not in message
    if kind in WRONG_BY_DEFAULT:
        assert f"credit.kind {kind!r} needs 0.0, not 1.0" in message
    else:
        assert f"required with credit.kind {kind!r}" in message and "`alpha: 0.5`" in message
        edit(path, alpha=1.0)  # a control may ignore its credit, but a caution says so
        mine = load_study(configs / "studies/bakeoff_plateau.yaml").methods["Mine"]
        assert mine.credit_caution(flat=False).startswith(
            "alpha is 1, so no update reads its credit"
        )
        edit(path, alpha=0.5)
        mine = load_study(configs / "studies/bakeoff_plateau.yaml").methods["Mine"]
        assert mine.credit_caution(flat=False) == ""


@pytest.mark.parametrize(
    "variant",
    [
        {"of": "flatGRPO", "credit": {"kind": "progress"}},
        {"of": "RLOO", "credit": {"kind": "progress"}, "turn_norm": "position"},
        {"of": "PPO", "advantage": "group", "credit": {"kind": "progress"}},
        {"of": "SFTOnly", "train": True, "credit": {"kind": "progress"}},
    ],
    ids=lambda variant: variant["of"],
)
def test_a_variant_does_not_inherit_an_alpha_that_its_credit_did_not_choose(configs, variant):
    study = configs / "studies/bakeoff_plateau.yaml"
    given = {"methods": ["flatGRPO", "Mine"], "variants": {"Mine": variant}}
    assert "variants.Mine: alpha: required with" in error_of(configs, given)
    given["variants"] = {"Mine": variant | {"alpha": 0.25}}
    assert load_study(study, given).methods["Mine"].alpha == 0.25
    edit(study, **given | {"variants": {"Mine": variant}})
    assert "variants.Mine: alpha: required with" in error_of(configs)


@pytest.mark.parametrize(
    ("name", "flat", "said"),
    [
        ("Progressive", True, "made so by turn_norm: position"),
        ("GiGPO", True, "its credit tells no turn of a trajectory from another"),
        ("Progressive", False, ""),
        *((name, True, "") for name in ("flatGRPO", "ZeroCredit", "RLOO", "PPO", "SFTOnly")),
    ],
)
def test_flat_credit_is_named_where_turns_were_to_differ(name, flat, said):
    path = CONFIGS / f"methods/{name}.yaml"
    caution = validate(MethodConfig, read_yaml(path), str(path)).credit_caution(flat)
    assert said in caution and bool(said) == bool(caution)


def test_a_variant_without_a_label_is_shown_by_its_key(configs):
    variants = {"P25": {"of": "Progressive", "alpha": 0.25}}
    names = ["flatGRPO", "Progressive", "P25"]
    edit(configs / "studies/bakeoff_plateau.yaml", methods=names, variants=variants)
    methods = load_study(configs / "studies/bakeoff_plateau.yaml").methods
    shown = [method.shown_label for method in methods.values()]
    assert shown == ["flat GRPO", "Progressive", "P25"]


@pytest.mark.parametrize("label", ["Progressive", "flat GRPO"])
def test_two_arms_under_one_label_are_refused(configs, label):
    path = configs / "studies/bakeoff_plateau.yaml"
    variants = {"P25": {"of": "Progressive", "alpha": 0.25, "label": label}}
    edit(path, methods=["flatGRPO", "Progressive", "P25"], variants=variants)
    other = "Progressive" if label == "Progressive" else "flatGRPO"
    expected = f"{path}: methods: {other} and P25 would both be shown as {label!r}"
    assert error_of(configs).startswith(expected)


@pytest.mark.parametrize("cut", ["words", "nonsense"])
def test_a_cut_of_another_environments_text_is_refused(configs, cut):
    path = configs / "models/tiny.yaml"
    given = yaml.safe_load(path.read_bytes())
    edit(path, tiny=given["tiny"] | {"cut": "phrases"})
    assert load_study(configs / "studies/bakeoff_plateau.yaml").model.tiny.cut == "phrases"
    edit(path, tiny=given["tiny"] | {"cut": cut})
    expected = f"configs/models/tiny.yaml: tiny.cut: {cut!r}: the text of alfworld is cut by 'phra"
    assert error_of(configs).startswith(expected)


def test_the_base_of_a_tiny_model_is_told_whose_text_it_reads(configs):
    study = load_study(configs / "studies/bakeoff_plateau.yaml")
    assert stage_settings(study, "base")["env"] == {"name": "alfworld"}
