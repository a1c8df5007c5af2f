"""The studies `..._5x40` against H-GRPO's protocol, key by key, and against their twins."""

import pytest
from places import PROJECT

from hgrpo.study.study import load_study

WORLDS = ("alfworld", "webshop")
TRAINED = ("flatGRPO", "LLMJudge_gpt", "TurnRDV1_lean", "TurnRDV2_carry", "Progressive")
# Keys of `training` that say only how the work is cut and placed.
FREE = {"microbatch_tokens", "in_flight", "importance_cap", "max_action_tokens", "lr"}


def load(name):
    return load_study(PROJECT / f"configs/studies/{name}.yaml")


@pytest.mark.parametrize(("suffix", "rollouts", "lr"), [("5x40", 4, 1e-6), ("5x40_tier2", 8, 5e-6)])
@pytest.mark.parametrize("world", WORLDS)
def test_rounds_and_update(world, suffix, rollouts, lr):
    study = load(f"{world}_{suffix}")
    assert (study.config.rounds, study.config.seeds) == (5, [11, 23])
    for method, training in study.training.items():
        assert training.steps_per_round * training.tasks_per_step == 40, method
        assert training.tasks_per_step == 2  # groups of an optimiser step
        assert (training.minibatches, training.epochs) == (1, 1)
        assert (training.rollouts_per_task, training.lr) == (rollouts, lr)
        assert (training.betas, training.weight_decay) == ((0.9, 0.999), 0.01)
        assert (training.warmup_steps, training.max_grad_norm) == (0, 1)
        assert (training.clip_low, training.clip_high) == (0.2, 0.2)
        assert (training.temperature, training.max_action_tokens) == (1, 48)
        assert training.loss_reduction == "token" and training.carry_policy
        kl = training.kl
        assert kl.adaptive and (kl.init, kl.target, kl.minimum, kl.maximum) == (0.04, 0.04, 1e-4, 1)


@pytest.mark.parametrize("suffix", ["5x40", "5x40_tier2"])
@pytest.mark.parametrize(("world", "cap"), [("alfworld", 30), ("webshop", 6)])
def test_world_model_and_fine_tuning(world, cap, suffix):
    study = load(f"{world}_{suffix}")
    assert (study.env.turn_cap, study.env.source) == (cap, "folder")
    expert, sft = study.env.expert, study.config.sft
    assert (expert.trajectories, expert.min_return) == (200, 0.5)
    assert (sft.epochs, sft.lr, sft.warmup_steps, sft.weight_decay) == (3, 1e-4, 0, 0.01)
    model = study.model
    assert model.path.endswith("/Qwen2.5-1.5B-Instruct") and model.adapt == "lora"
    assert (model.lora.rank, model.lora.alpha) == (16, 32)
    assert model.lora.targets == ["q_proj", "k_proj", "v_proj", "o_proj"]
    panels = {"alfworld": (140, 134), "webshop": (200, 500)}[world]
    evaluation = study.config.evaluation
    assert (evaluation.validation_games, evaluation.test_games) == panels
    assert (evaluation.temperatures, evaluation.max_action_tokens) == ([0], 48)


@pytest.mark.parametrize("world", WORLDS)
def test_the_six_methods(world):
    study = load(f"{world}_5x40")
    assert list(study.methods) == ["SFTOnly", *TRAINED]
    arms = {name: arm for name, arm in study.methods.items() if arm.train}
    for name, arm in arms.items():
        assert arm.alpha == (1 if name == "flatGRPO" else 0.5)
        assert (arm.turn_norm, arm.group_norm, arm.dead_groups) == ("position", "std", "skip")
        assert arm.training == {}
    judge = arms["LLMJudge_gpt"].credit.declared
    assert (judge.model, judge.variant, judge.normalisation) == (
        *("gpt-4o-mini", "trajectory", "share"),
    )
    assert (judge.temperature, judge.timeout_s, judge.retries, judge.backoff_s) == (0, 30, 3, 1)
    assert judge.concurrency == 8


def check_fit(fit):
    assert (fit.epochs, fit.batch, fit.lr, fit.weight_decay) == (3, 16, 5e-4, 0.01)
    assert (fit.schedule, fit.warm_start, fit.half_life) == ("constant", False, None)
    # No epoch ends the fit before the others.
    assert fit.patience == fit.epochs
    assert (fit.value_weight, fit.entropy_weight, fit.contrastive_weight) == (0, 0, 0)


@pytest.mark.parametrize("world", WORLDS)
def test_turnrd(world):
    study = load(f"{world}_5x40")
    first, second = (study.methods[name].credit.declared for name in TRAINED[2:4])
    for declared in (first, second):
        assert declared.readout == "alpha_return" and declared.to_go is None
        check_fit(declared.fit)
        assert (declared.model.heads, declared.model.dropout) == (4, 0.1)
    assert (first.model.version, first.model.layers, first.model.hidden) == ("v1", 6, 384)
    assert not first.model.value_head
    assert (second.model.version, second.model.layers, second.model.hidden) == ("v2", 2, 128)
    assert (second.model.progress_prior, second.model.film) == (1, False)
    assert (second.fit.rank_weight, second.fit.rank_margin, second.fit.prior_weight) == (
        *(0.1, 0.1, 0.01),
    )


@pytest.mark.parametrize("world", WORLDS)
def test_the_second_tier_has_three_shares_and_the_guard(world):
    study, first = load(f"{world}_5x40_tier2"), load(f"{world}_5x40")
    arms = {name: arm for name, arm in study.methods.items() if arm.train}
    assert [arm.alpha for arm in arms.values()] == [1, 0.25, 0.5, 0.75]
    for arm in arms.values():
        assert arm.dead_groups == "skip_equal_returns"
        if arm.credit.kind == "turnrd":
            assert arm.credit == first.methods["TurnRDV2_carry"].credit
    for key in ("sft", "engine", "evaluation", "env", "model", "seeds", "rounds"):
        assert getattr(study.config, key) == getattr(first.config, key), key


def test_one_study_imitates_people():
    study = load("webshop_human")
    expert = study.env.expert
    assert expert.recorded.endswith("/il_trajs_finalized_images.zip") and expert.min_return == 0.5
    assert study.env.goals == "human"


@pytest.mark.parametrize("world", WORLDS)
def test_the_twin_has_the_same_arms_and_the_same_keys(world):
    large, twin = load(f"{world}_5x40"), load(f"{world}_5x40_cpu")
    assert [name.partition("_")[0] for name in twin.methods] == [
        name.partition("_")[0] for name in large.methods
    ]
    for one, other in zip(large.methods.values(), twin.methods.values(), strict=True):
        names = {"name"} if one.credit.kind != "judge" else {"name", "credit"}
        assert one.model_dump(exclude=names) == other.model_dump(exclude=names)
    one, other = (study.training["flatGRPO"].model_dump(exclude=FREE) for study in (large, twin))
    assert one | {"steps_per_round": 1} == other
    lora, small = large.model.lora, twin.model.lora
    assert lora == small and twin.model.adapt == "lora"
    assert (large.config.seeds, large.config.reference) == (twin.config.seeds, "flatGRPO")
    assert twin.env.source == "generated" and twin.config.rounds == 2
    for key in ("trajectories", "min_return"):
        assert getattr(twin.env.expert, key) == getattr(large.env.expert, key)
