"""vpo and pedagogy: every run that the settings refuse, with the words that name what is wrong."""

import pytest

from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.sandbox.pedagogy.settings import NEEDS as LESSON_NEEDS
from hgrpo.sandbox.pedagogy.settings import RULES as LESSONS
from hgrpo.sandbox.pedagogy.settings import PedagogySettings
from hgrpo.sandbox.vpo.settings import NEEDS as SET_NEEDS
from hgrpo.sandbox.vpo.settings import RULES as SETS
from hgrpo.sandbox.vpo.settings import VpoSettings

BOTH = [
    ({"group_size": 1}, "needs groups: group_size above 1"),
    ({"group_size": 7}, "is no multiple of group_size 7"),
    ({"batch_size": 4}, "batch_size 4 is no multiple of group_size 8"),
    ({"method": "GRPO"}, "method: 'GRPO': there is no such one"),
    ({"seeds": ()}, "seeds"),
    ({"seeds": (1, 1)}, "seeds: one is listed twice"),
    *[({"rule": {"clip": value}}, "rule.clip") for value in (-0.1, 0)],
    *[({key: 0}, key) for key in ("num_steps", "batch_size", "eval_every", "inner_epochs")],
]
VPO = [
    *BOTH,
    ({"method": "VPOGRP"}, "did you mean 'VPOGRPO'?"),
    ({"task": "pareto"}, "did you mean 'pareto_front'?"),
    *[({key: 0}, key) for key in ("lr", "hidden", "num_prompts", "num_candidates")],
    ({"rule": {"draws": 0}}, "rule.draws"),
    ({"rule": {"score": "mean"}}, "rule.score"),
    ({"rule": {"credit": "mean"}}, "rule.credit"),
    ({"method": "ScalarGRPO"}, "ScalarGRPO needs sets of one answer"),
    (
        {"method": "ScalarGRPO", "num_candidates": 1, "rule": {"credit": "marginal"}},
        "rule.credit: unknown key",
    ),
    *[
        ({"method": name, "num_candidates": 1}, f"{name} needs sets of several answers")
        for name in ("MultiRLVR", "VPOGRPO")
    ],
    ({"inner_epochs": 1}, "VPOGRPO needs ratios other than 1"),
]
PEDAGOGY = [
    *BOTH,
    ({"method": "StudentGRP"}, "did you mean 'StudentGRPO'?"),
    *[
        ({key: 0}, key)
        for key in (
            *("teacher_lr", "student_lr", "student_steps", "max_grad_norm", "completion_len"),
            *("answer_len", "d_model", "nhead", "num_layers"),
        )
    ],
    ({"content_vocab_size": 1}, "content_vocab_size"),
    ({"teacher_steps": -1, "method": "StudentGRPO"}, "teacher_steps"),
    *[
        ({"method": name, "teacher_steps": 0}, f"{name} needs a teacher that learns")
        for name in ("PedagogicalRL", "TeacherRL")
    ],
    ({"nhead": 3}, "d_model 64 is no multiple of nhead 3"),
    ({"answer_len": 4}, "answer_len 4 is above completion_len 3"),
    *[({"rule": {key: 0}}, f"rule.{key}") for key in ("beta", "kappa")],
    ({"rule": {"strength": -0.1}}, "rule.strength"),
    ({"rule": {"penalty": "max"}}, "rule.penalty"),
    ({"rule": {"penalty": "mean", "beta": 2.0}}, "beta: 2.0 is read only with penalty spike"),
    ({"rule": {"imitation": "plain", "kappa": 2.0}}, "kappa: 2.0 is read only with imitation"),
    *[
        ({"method": "TeacherRL", "rule": {key: value}}, f"rule.{key}: unknown key")
        for key, value in (("reward", "product"), ("penalty", "spike"), ("gamma", -1.0))
    ],
    ({"method": "StudentGRPO", "rule": {"beta": 2.0}}, "rule.beta: unknown key"),
    ({"rule": {"strength": 0}}, "PedagogicalRL needs a learnability_lambda above 0"),
    ({"completion_len": 1}, "PedagogicalRL needs a completion_len above 1"),
]
REFUSED = [(VpoSettings, *each) for each in VPO] + [(PedagogySettings, *each) for each in PEDAGOGY]


@pytest.mark.parametrize(("model", "given", "text"), REFUSED)
def test_a_run_that_cannot_be_is_refused_in_one_line(model, given, text):
    with pytest.raises(UserError) as caught:
        validate(model, given, "run")
    assert text in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "needs", "table"), [(SETS, SET_NEEDS, VPO), (LESSONS, LESSON_NEEDS, PEDAGOGY)]
)
def test_every_need_is_known_and_refuses_in_the_table(rules, needs, table):
    assert {name for rule in rules.values() for name in rule.needs} == set(needs)
    text = " ".join(text for _, text in table)
    beginnings = {name: need.text.split(":")[0][:18] for name, need in needs.items()}
    assert [name for name, begins in beginnings.items() if begins not in text] == []


def test_a_degenerate_run_can_be_allowed_and_is_noted():
    allowed = {"allow_degenerate": True}
    assert len(VpoSettings(inner_epochs=1, **allowed).notes) == 1
    plain = {"completion_len": 1, "rule": {"strength": 0}}
    assert len(PedagogySettings(**plain, **allowed).notes) == 2
    assert VpoSettings(**allowed).notes == [] == PedagogySettings(**allowed).notes


def test_the_defaults_are_those_of_the_original():
    vpo, pedagogy = VpoSettings(), PedagogySettings()
    assert vpo.rule.model_dump() == {"clip": 0.2, "draws": 16, "score": "drawn", "credit": "shared"}
    assert (vpo.batch_size, vpo.group_size, vpo.num_candidates, vpo.inner_epochs) == (128, 8, 3, 4)
    assert (vpo.num_steps, vpo.lr, vpo.hidden, vpo.num_prompts) == (500, 3e-3, 32, 8)
    own = pedagogy.rule
    assert (own.beta, own.strength, own.kappa, own.gamma) == (5.0, 0.5, 4.0, -2.5)
    assert (pedagogy.num_steps, pedagogy.batch_size, pedagogy.group_size) == (300, 96, 8)
    taught = PedagogySettings(method="TeacherRL").rule
    assert taught.model_dump() == {"clip": 0.2, "strength": 0.5, "imitated": "all"}
