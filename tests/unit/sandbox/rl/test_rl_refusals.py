"""Every run that the settings refuse, each with the words that name what is wrong."""

import subprocess
import sys

import pytest

from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.sandbox.rl.settings import NEEDS, RULES, RlSettings
from hgrpo.sandbox.tasks import CHAINS

SEQUENCE = {"task": "token_reversal", "batch_size": 96}
GROUPS = SEQUENCE | {"group_size": 8, "inner_epochs": 4}
BINARY = GROUPS | {"binary_reward": True}
NOISE = {"reward_noise": 0.2, "reward_noise_mode": "random_reward"}
CHAIN = SEQUENCE | {"task": "chain_reversal"}
LM = {"task": "lm_bandit", "kl_weight": 0.1, "batch_size": 16}
# By the name of a rule's setting: a value that every rule refuses.
WRONG = {
    **dict.fromkeys(("eta", "tau", "cap", "clip", "keep"), 0),
    **dict.fromkeys(("low", "high", "penalty", "decay", "strength", "scale"), -0.1),
    **dict.fromkeys(("threshold", "alpha", "beta"), -0.1),
    **dict.fromkeys(("norm", "reduction"), "max"),
}

REFUSED = [
    ({"task": "token_reversl"}, "did you mean 'token_reversal'?"),
    ({"method": "TPOX"}, "did you mean 'TPO'?"),
    ({"baseline": "mean"}, "baseline: 'mean': there is no such one"),
    ({"replay_priority": "age"}, "replay_priority: 'age': there is no such one"),
    ({"reward_noise_mode": "flip"}, "reward_noise_mode: 'flip': there is no such one"),
    *[({key: -1}, key) for key in ("delay", "replay_capacity", "replay_age_decay", "lr")],
    *[
        ({key: 0}, key)
        for key in (
            *("num_steps", "batch_size", "eval_every", "inner_epochs", "group_size", "seq_len"),
            *("vocab_size", "context_len", "lr", "hidden", "num_layers"),
        )
    ],
    ({"seeds": ()}, "seeds"),
    ({"seeds": (1, 1)}, "seeds: one is listed twice"),
    ({"replay_capacity": 4, "delay": 4}, "replay_capacity 4 holds no batch of age 4"),
    ({"delay": 5, "num_steps": 5}, "delay 5 never acts, because num_steps is 5"),
    (SEQUENCE | {"method": "PG", "delay": 5, "num_steps": 5}, "PG needs ratios other than 1"),
    ({"replay_min_age": 2}, "replay_min_age: a run without replay has none"),
    ({"replay_start": 2}, "replay_start: a run without replay has none"),
    ({"task": "chain_arithmetic", "seq_len": 1}, "chain_arithmetic needs seq_len"),
    ({"task": "format_answer", "seq_len": 1}, "format_answer needs seq_len"),
    ({"task": "masked_reversal", "score_len": 11}, "score_len 11"),
    ({"task": "masked_reversal", "score_len": 0}, "score_len 0"),
    *[(SEQUENCE | {"task": name, "binary_reward": True}, "binary_reward: task") for name in CHAINS],
    ({"reward_noise": -0.1, "reward_noise_mode": "label_flip"}, "reward_noise"),
    ({"reward_noise": 1.5, "reward_noise_mode": "label_flip"}, "reward_noise"),
    ({"reward_noise": 0.5}, "reward_noise needs a reward_noise_mode"),
    ({"reward_noise_mode": "label_flip"}, "needs reward_noise above 0"),
    (NOISE | {"reward_noise_mode": "false_positive_rare_token"}, "a task with sequences"),
    (NOISE | {"reward_noise_mode": "false_positive_sep"}, "a task with sequences"),
    (CHAIN | NOISE | {"reward_noise_mode": "label_flip"}, "no flip of a reward of three"),
    (SEQUENCE | {"data": "mnist.npz"}, "data: task token_reversal has none"),
    (SEQUENCE | {"kl_weight": 0.1}, "kl_weight: task token_reversal has none"),
    (SEQUENCE | {"d_model": 63}, "d_model 63 is no multiple of nhead 2"),
    (SEQUENCE | {"baseline": "exact"}, "baseline exact adds up over all outputs"),
    ({"baseline": "group", "batch_size": 1}, "baseline group needs a batch of at least 2"),
    *[
        (GROUPS | {"method": name} | change, text)
        for name in ("GRPO", "DrGRPO", "DAPO", "DAPOLite", "TPO", "TPONoAnchor", "GroupPG", "TEMPO")
        for change, text in (
            ({"group_size": 1}, f"{name} needs groups: group_size above 1"),
            ({"group_size": 7}, "batch_size 96 is no multiple of group_size 7"),
            ({"batch_size": 4}, "batch_size 4 is no multiple of group_size 8"),
            ({"replay_capacity": 8}, f"{name} needs fresh groups: replay_capacity 0"),
        )
    ],
    *[
        ({"method": name}, f"{name} needs a task with sequences")
        for name in ("SelfDistillDG", "SCOPELite")
    ],
    *[
        (
            CHAIN | {"method": name, "reward_noise": 0.2, "reward_noise_mode": "random_reward"},
            f"{name} needs rewards without noise",
        )
        for name in ("SelfDistillDG", "SCOPELite")
    ],
    *[
        (GROUPS | {"method": name} | change, f"{name} needs {text}")
        for name in ("TPOToken", "GRPOToken")
        for change, text in (
            ({"task": "mnist"}, "the fractional reward"),
            ({"task": "chain_reversal"}, "the fractional reward"),
            ({"binary_reward": True}, "the fractional reward"),
            ({"group_size": 1}, "groups"),
            ({"delay": 1}, "fresh batches"),
            ({"replay_capacity": 2}, "fresh batches"),
            (NOISE, "rewards without noise"),
            ({"diagnostics": True}, "diagnostics false"),
        )
    ],
    *[
        (SEQUENCE | {"method": "DGToken"} | change, f"DGToken needs {text}")
        for change, text in (
            ({"task": "chain_reversal"}, "the fractional reward"),
            ({"binary_reward": True}, "the fractional reward"),
            ({"task": "mnist"}, "the fractional reward"),
            (NOISE, "rewards without noise"),
        )
    ],
    (SEQUENCE | {"method": "ReplayDG"}, "ReplayDG needs a replay buffer"),
    (SEQUENCE | {"method": "FreshDG"}, "FreshDG needs batches that age"),
    (SEQUENCE | {"method": "LogGrowth"}, "LogGrowth needs a bandit"),
    (LM | {"method": "LogGrowth"}, "LogGrowth needs kl_weight 0"),
    (NOISE | {"method": "LogGrowth"}, "LogGrowth needs rewards without noise"),
    (CHAIN | {"method": "MaxRL"}, "MaxRL needs a reward that is 0 or 1"),
    (SEQUENCE | {"method": "MaxRL"}, "MaxRL needs a reward that is 0 or 1"),
    (
        SEQUENCE | {"method": "MaxRL", "task": "masked_reversal"},
        "MaxRL needs a reward that is 0 or 1",
    ),
    (BINARY | {"method": "MaxRL", "group_size": 1}, "MaxRL needs groups: group_size above 1"),
    (BINARY | {"method": "MaxRL", "group_size": 7}, "batch_size 96 is no multiple of group_size 7"),
    (BINARY | {"method": "MaxRL", "replay_capacity": 8}, "MaxRL needs fresh groups"),
    (LM | {"method": "MaxRL"}, "MaxRL needs kl_weight 0"),
    (NOISE | {"method": "MaxRL"}, "MaxRL needs rewards without noise"),
    (LM | {"method": "DAPO"}, "DAPO needs kl_weight 0"),
    (LM | {"method": "DAPOLite"}, "DAPOLite needs kl_weight 0"),
    *[
        ({"method": "TPOFullAction"} | change, f"TPOFullAction needs {text}")
        for change, text in (
            (SEQUENCE, "task mnist"),
            ({"delay": 1}, "fresh batches"),
            ({"replay_capacity": 2}, "fresh batches"),
            ({"inner_epochs": 2}, "one pass a batch"),
            (NOISE, "rewards without noise"),
        )
    ],
    ({"method": "Kondo", "rule": {"keep": 1.1}}, "rule.keep"),
    ({"method": "DGEntropyGuard", "rule": {"strength": 1.1}}, "rule.strength"),
    *[
        (GROUPS | {"method": name, "rule": {key: 0}}, f"rule.{key}")
        for name in ("DAPO", "DAPOLite")
        for key in ("low", "high")
    ],
    *[
        (GROUPS | {"method": name, "rule": {key: WRONG[key]}}, f"rule.{key}")
        for name, rule in RULES.items()
        for key in rule.model_fields
    ],
    ({"method": "DG", "rule": {"cap": 3}}, "rule.cap: unknown key"),
    # What the original lets pass.
    *[
        (SEQUENCE | {"method": name}, f"{name} needs ratios other than 1")
        for name in ("PG", "TrajPG", "ASPO", "R2VPO")
    ],
    (
        GROUPS | {"method": "FilteredDG", "grouped": True},
        "FilteredDG needs an uncertainty_threshold below 0.5",
    ),
    (
        SEQUENCE | {"method": "FilteredDG", "rule": {"threshold": 0.2}},
        "FilteredDG needs a deviation of each group",
    ),
    (SEQUENCE | {"method": "FreshDG", "delay": 4}, "FreshDG needs batches of different ages"),
    (
        SEQUENCE | {"method": "FreshDG", "delay": 4, "replay_capacity": 5},
        "FreshDG needs batches of different ages",
    ),
    (
        SEQUENCE | {"method": "FreshDG", "replay_min_age": 4, "replay_capacity": 5},
        "replay_capacity above the larger of delay and replay_min_age, plus 1",
    ),
    (
        {"method": "Kondo", "batch_size": 2, "entropy_diagnostics": True},
        "Kondo needs a screen that, with entropy_diagnostics, lets two samples pass",
    ),
]


@pytest.mark.parametrize(("given", "text"), REFUSED)
def test_a_run_that_cannot_be_is_refused_in_one_line(given, text):
    with pytest.raises(UserError) as caught:
        validate(RlSettings, given, "rl")
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_a_degenerate_run_can_be_allowed_and_is_noted():
    given = SEQUENCE | {"allow_degenerate": True}
    assert validate(RlSettings, given | {"method": "ASPO"}, "rl").notes == [
        "ASPO needs ratios other than 1: inner_epochs above 1, delay or replay_capacity above 0"
    ]
    assert len(validate(RlSettings, given | {"method": "FilteredDG"}, "rl").notes) == 2
    assert validate(RlSettings, given | {"method": "ASPO", "delay": 1}, "rl").notes == []
    assert validate(RlSettings, given | {"method": "ASPO", "rule": {"low": 0}}, "rl").notes
    for hard in ({"method": "ReplayDG"}, {"method": "TPO", "replay_capacity": 4}):
        with pytest.raises(UserError):
            validate(RlSettings, given | hard, "rl")


def test_every_need_is_known_and_refuses_in_the_table():
    names = {name for rule in RULES.values() for name in rule.needs}
    assert names == set(NEEDS)
    text = " ".join(text for _, text in REFUSED)
    beginnings = {name: need.text.split(",")[0].split(":")[0][:20] for name, need in NEEDS.items()}
    assert [name for name, begins in beginnings.items() if begins not in text] == []


def test_a_rule_spells_out_its_own_settings():
    given = SEQUENCE | {"method": "Kondo", "rule": {"keep": 0.25}}
    assert validate(RlSettings, given, "rl").rule.model_dump() == {"eta": 1.0, "keep": 0.25}
    assert len(RULES) == 31


def test_settings_and_rules_load_without_torch(project):
    code = "import sys, hgrpo.sandbox.single_runs, hgrpo.cli.sandbox; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "False"
