"""Runs that the settings refuse, each in one line: one case for each check and each need."""

import pytest

from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.sandbox.opd import settings as opd
from hgrpo.sandbox.opd.microscope.settings import MicroscopeSettings
from hgrpo.sandbox.pedagogy import settings as pedagogy
from hgrpo.sandbox.rl import settings as rl
from hgrpo.sandbox.vpo import settings as vpo

SEQUENCE = {"task": "token_reversal", "batch_size": 96}
GROUPS = SEQUENCE | {"group_size": 8, "inner_epochs": 4}
NOISE = {"reward_noise": 0.2, "reward_noise_mode": "random_reward"}
CHAIN = SEQUENCE | {"task": "chain_reversal"}
MNIST = {"method": "TPOFullAction"}


def top_k(method, **rule):
    return {"phases": [{"method": method, "rule": rule}]}


RL = [
    ({"method": "TPOX"}, "method: 'TPOX': unknown rule; did you mean 'TPO'?"),
    ({"method": "DG", "rule": {"cap": 3}}, "rule.cap: unknown key"),
    ({"method": "Kondo", "rule": {"keep": 1.1}}, "rule.keep: input should be less than"),
    # At 0, rounding would decide which tokens train.
    (GROUPS | {"method": "GRPO", "rule": {"clip": 0}}, "rule.clip: input should be greater"),
    ({"seeds": (1, 1)}, "seeds: expected a non-empty list of distinct"),
    ({"lr": float("nan")}, "lr"),
    (GROUPS | {"method": "TPO", "group_size": 7}, "batch_size 96 is not a multiple of group_size"),
    (SEQUENCE | {"d_model": 63}, "d_model 63 is not a multiple of nhead 2"),
    ({"replay_capacity": 4, "delay": 4}, "replay_capacity 4 must exceed the minimum age"),
    ({"delay": 5, "num_steps": 5}, "delay 5 has no effect, because num_steps is 5"),
    ({"replay_min_age": 2}, "replay_min_age: a run without replay does not"),
    (CHAIN | {"binary_reward": True}, "binary_reward: task chain_reversal does not"),
    ({"task": "chain_arithmetic", "seq_len": 1}, "chain_arithmetic requires seq_len"),
    ({"task": "masked_reversal", "score_len": 11}, "score_len 11"),
    ({"reward_noise": 0.5}, "reward_noise requires a reward_noise_mode"),
    ({"reward_noise_mode": "label_flip"}, "requires reward_noise above 0"),
    (NOISE | {"reward_noise_mode": "false_positive_sep"}, "a task with sequences"),
    (CHAIN | NOISE | {"reward_noise_mode": "label_flip"}, "undefined for a reward of three"),
    (SEQUENCE | {"baseline": "exact"}, "baseline exact sums over all outputs"),
    ({"baseline": "group", "batch_size": 1}, "baseline group requires a batch of at least 2"),
    # Needs of rules.
    (GROUPS | {"method": "GRPO", "group_size": 1}, "GRPO requires groups (group_size above 1)"),
    (GROUPS | {"method": "TEMPO", "replay_capacity": 8}, "TEMPO requires fresh groups (replay_cap"),
    ({"method": "SCOPELite"}, "SCOPELite requires a task with sequences"),
    (CHAIN | NOISE | {"method": "SelfDistillDG"}, "SelfDistillDG requires rewards without noise"),
    (CHAIN | {"method": "DGToken"}, "DGToken requires the fractional reward"),
    (GROUPS | {"method": "TPOToken", "delay": 1}, "TPOToken requires fresh batches (delay 0"),
    (GROUPS | {"method": "GRPOToken", "diagnostics": True}, "GRPOToken requires diagnostics false"),
    (SEQUENCE | {"method": "ReplayDG"}, "ReplayDG requires a replay buffer"),
    (SEQUENCE | {"method": "FreshDG"}, "FreshDG requires batches of age above 0"),
    (SEQUENCE | {"method": "FreshDG", "delay": 4}, "FreshDG requires batches of different ages"),
    (SEQUENCE | {"method": "LogGrowth"}, "LogGrowth requires a bandit (task"),
    (CHAIN | {"method": "MaxRL"}, "MaxRL requires a reward that is 0 or 1"),
    ({"task": "lm_bandit", "kl_weight": 0.1, "method": "DAPO"}, "DAPO requires kl_weight 0"),
    (SEQUENCE | MNIST, "TPOFullAction requires task mnist"),
    ({"inner_epochs": 2} | MNIST, "TPOFullAction requires one update per batch"),
    (SEQUENCE | {"method": "PG", "delay": 5, "num_steps": 5}, "PG requires ratios other than 1"),
    (
        GROUPS | {"method": "FilteredDG", "grouped": True},
        "FilteredDG requires an uncertainty_threshold below 0.5",
    ),
    (
        SEQUENCE | {"method": "FilteredDG", "rule": {"threshold": 0.2}},
        "FilteredDG requires groups (group_size above 1",
    ),
    (
        {"method": "Kondo", "batch_size": 2, "entropy_diagnostics": True},
        "Kondo requires at least two samples that pass the screen",
    ),
]
OPD = [
    ({"teacher_epsilon": 1.0}, "teacher_epsilon 1.0 must be above 0 and below 1"),
    ({"task": "format_answer", "seq_len": 1}, "format_answer requires seq_len of at least 2"),
    ({"phases": []}, "phases: expected at least one phase"),
    ({"phases": [{"start": 3}]}, "phases: the first phase must start at step 0, not 3"),
    ({"phases": [{}, {"start": 5}, {"start": 5}]}, "phases: `start` must increase, not [0, 5, 5]"),
    ({"phases": [{}, {"start": 500}]}, "phases: start 500 must be below num_steps 500"),
    ({"phases": [{"rule": {"k": 3}}]}, "phases.0.rule.k: unknown key"),
    (top_k("OPDTopKTail", k=0), "phases.0.rule.k: input should be"),
    # Needs of losses.
    (top_k("OPDTopKRenormalised", k=1), "OPDTopKRenormalised requires a top_k above 1"),
    (top_k("OPDTopKReverseKL", k=3), "OPDTopKReverseKL requires a top_k below the number"),
    (top_k("OPDPG"), "OPDPG requires ratios other than 1"),
]
VPO = [
    ({"task": "pareto"}, "task: input should be 'pareto_front'"),
    ({"rule": {"draws": 0}}, "rule.draws"),
    # Needs of rules.
    ({"group_size": 1}, "requires groups (group_size above 1)"),
    ({"method": "ScalarGRPO"}, "ScalarGRPO requires single answers"),
    ({"method": "MultiRLVR", "num_candidates": 1}, "MultiRLVR requires sets of several answers"),
    ({"inner_epochs": 1}, "VPOGRPO requires ratios other than 1"),
]
PEDAGOGY = [
    ({"answer_len": 4}, "answer_len 4 exceeds completion_len 3"),
    (
        {"rule": {"penalty": "mean", "beta": 2.0}},
        "beta: 2.0 has an effect only with penalty: spike",
    ),
    (
        {"rule": {"imitation": "plain", "kappa": 2.0}},
        "kappa: 2.0 has an effect only with imitation: gated",
    ),
    # Needs of rules.
    ({"group_size": 1}, "requires groups (group_size above 1)"),
    ({"method": "TeacherRL", "teacher_steps": 0}, "TeacherRL requires a teacher that learns"),
    ({"rule": {"strength": 0}}, "PedagogicalRL requires a learnability_lambda above 0"),
    ({"completion_len": 1}, "PedagogicalRL requires a completion_len above 1"),
]
MICROSCOPE = [
    ({"horizons": []}, "horizons: tuple should have at least 1 item"),
    ({"num_batches": 1}, "num_batches"),
    ({"d_model": 31}, "d_model 31 is not a multiple of nhead 2"),
]
PIECES = [
    (rl, rl.RlSettings, RL),
    (opd, opd.OpdSettings, OPD),
    (vpo, vpo.VpoSettings, VPO),
    (pedagogy, pedagogy.PedagogySettings, PEDAGOGY),
]
REFUSED = [(model, *case) for _, model, cases in PIECES for case in cases]
REFUSED += [(MicroscopeSettings, *case) for case in MICROSCOPE]


@pytest.mark.parametrize(("model", "settings", "text"), REFUSED)
def test_a_run_that_cannot_be_is_refused_in_one_line(model, settings, text):
    with pytest.raises(UserError) as caught:
        validate(model, settings, "run")
    assert text in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("piece", "_model", "cases"), PIECES)
def test_every_need_is_known_and_refuses_in_the_table(piece, _model, cases):
    assert {name for rule in piece.RULES.values() for name in rule.needs} == set(piece.NEEDS)
    texts = " ".join(text for _, text in cases)
    missing = [name for name, need in piece.NEEDS.items() if need.text[:15] not in texts]
    assert missing == []


def test_a_degenerate_run_can_be_allowed_and_is_noted():
    base = SEQUENCE | {"allow_degenerate": True}
    assert rl.RlSettings(**base, method="ASPO").notes == [
        "ASPO requires ratios other than 1 (inner_epochs above 1, or delay or replay_capacity "
        "above 0)"
    ]
    assert len(rl.RlSettings(**base, method="FilteredDG").notes) == 2
    assert rl.RlSettings(**base, method="ASPO", delay=1).notes == []
    with pytest.raises(UserError, match="ReplayDG requires a replay buffer"):
        validate(rl.RlSettings, base | {"method": "ReplayDG"}, "rl")
    plain = {"completion_len": 1, "rule": {"strength": 0}, "allow_degenerate": True}
    assert len(pedagogy.PedagogySettings(**plain).notes) == 2
