"""The assigners' declarations, and plug-ins found by file name."""

import json
import re

import pytest
from judge_cases import failures, group

import hgrpo.credit
from hgrpo.credit import kinds
from hgrpo.credit.base import Context, make_assigner
from hgrpo.credit.judge.settings import OPENAI
from hgrpo.credit.kinds import CreditConfig

MODEL = {"layers": 1, "hidden": 16, "heads": 2}
TURNRD = {"kind": "turnrd", "model": MODEL}
TAUGHT = TURNRD | {"fit": {"supervision_weight": 1.0}, "counterfactual": {}}
WARM = TURNRD | {"fit": {"warm_start": True}}
RUBRIC = {"kind": "judge", "model": "offline-rubric", "base_url": "service"}
PAID = {"kind": "judge", "model": "gpt-4o-mini"}
GRAPH = {"kind": "state_graph", "trajectory": {"mode": "loo"}}
HIDDEN = GRAPH | {"terms": [{"key": {"state": "hidden"}, "value": "mc_mean", "credit": "G-V"}]}
PLAIN = {
    "reads_embeddings": False,
    "needs_policy": False,
    "plays": False,
    "fits": False,
    "continues_fit": False,
    "sums_to": "",
    "label_remark": "",
    "is_control": False,
    "figures": (),
    "uses": (),
    "may_be_unreachable": False,
    "fallback_column": "",
}
LEARNT = {
    "reads_embeddings": True,
    "needs_policy": True,
    "fits": True,
    "sums_to": "return",
    "figures": ("turnrd",),
}
JUDGED = {
    "uses": ("judge_text",),
    "may_be_unreachable": True,
    "fallback_column": "judge_fallbacks",
}


@pytest.mark.parametrize(
    ("credit", "differs"),
    [
        ({"kind": "flat"}, {}),
        ({"kind": "progress"}, {"sums_to": "progress"}),
        ({"kind": "progress", "to_go": {}}, {}),
        ({"kind": "progress", "spread": "trajectory"}, {}),
        ({"kind": "entropy", "rule": "scaled"}, {"needs_policy": True}),
        ({"kind": "amortised"}, {"needs_policy": True, "plays": True, "fits": True}),
        ({"kind": "zero"}, {"is_control": True}),
        ({"kind": "random"}, {"sums_to": "progress", "is_control": True}),
        ({"kind": "counterfactual"}, {"needs_policy": True, "plays": True}),
        (GRAPH, {}),
        (HIDDEN, {"needs_policy": True}),
        (TURNRD, LEARNT),
        (WARM, LEARNT | {"continues_fit": True}),
        (TAUGHT, LEARNT | {"plays": True}),
        (TURNRD | {"readout": "value_baseline"}, LEARNT | {"sums_to": ""}),
        (TURNRD | {"to_go": {}}, LEARNT | {"sums_to": ""}),
        (RUBRIC, JUDGED | {"label_remark": "(offline rubric)"}),
        (PAID | {"normalisation": "share"}, JUDGED | {"sums_to": "return"}),
    ],
)
def test_declarations_by_hand(credit, differs):
    declared = CreditConfig(**credit).declared
    assert {name: getattr(declared, name) for name in PLAIN} == PLAIN | differs


@pytest.mark.parametrize(
    ("credit", "expected"),
    [
        ({"kind": "progress"}, ""),
        (RUBRIC, ""),
        (
            PAID,
            f"up to 48 calls to gpt-4o-mini at {OPENAI}, .*; caps of the study: max_calls 50000",
        ),
        (
            PAID | {"variant": "group", "max_calls": None, "max_dollars": None},
            "up to 6 calls .*not counting retries",
        ),
    ],
)
def test_what_six_groups_of_eight_may_ask_of_an_outside_service(credit, expected):
    message = CreditConfig(**credit).declared.outside_calls(6, 8)
    assert re.match(expected or "$", message)


def test_declarations_are_no_keys():
    for credit in (TURNRD, PAID, GRAPH):
        section = CreditConfig(**credit)
        assert not set(section.settings) & set(PLAIN)
        assert CreditConfig(**section.model_dump()) == section


ADDED = """
import json
from hgrpo.credit.base import CreditAssigner
from hgrpo.credit.settings import CreditSettings


class Settings(CreditSettings):
    fits = True
    reads_embeddings = True
    power: float = 2.0

    @property
    def sums_to(self):
        return "return" if self.power == 1 else ""


class Added(CreditAssigner):
    def __init__(self, settings, context):
        self.settings, self.fitted = settings, context.fitted

    def assign(self, group):
        return [[self.settings.power] * len(t.turns) for t in group.trajectories]


def make(settings, context):
    return Added(settings, context)


def fit(settings, rounds, previous, seed, round, out, show):
    advance = show(len(rounds), "folder")
    for folder in rounds:
        advance(folder.name)
    log = {"rows": [], "elapsed_s": 0.0}
    (out / "train_log.json").write_text(json.dumps(log), encoding="utf-8")
    return f"fitted with power {settings.power:g}"
"""


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Puts a module among the assigners."""
    monkeypatch.setattr(hgrpo.credit, "__path__", [*hgrpo.credit.__path__, str(tmp_path)])

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return CreditConfig

    return write


def test_an_assigner_that_fits_is_one_file(add, tmp_path):
    section = add("added_by_a_test", ADDED)(kind="added_by_a_test", power=1)
    declared = section.declared
    assert (declared.fits, declared.reads_embeddings, declared.sums_to) == (True, True, "return")
    assigner = make_assigner(section, Context(fitted=tmp_path))
    assert assigner.fitted == tmp_path and assigner.report() == {}
    together = assigner.assign_many([group(failures(2)), group(failures(1))])
    assert together == [[[1.0] * 4, [1.0] * 4], [[1.0] * 4]]
    seen = []

    def show(total, unit):
        seen.append((total, unit))
        return seen.append

    rounds = [tmp_path / "round_1", tmp_path / "round_2"]
    module = kinds.load("added_by_a_test")
    assert module.fit(declared, rounds, None, 11, 2, tmp_path, show) == "fitted with power 1"
    assert seen == [(2, "folder"), "round_1", "round_2"]
    assert json.loads((tmp_path / "train_log.json").read_bytes())["rows"] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\ndef make(:\n", r"cannot be imported: SyntaxError: .* \(broken_\d+.py, line 2\)"),
        ("x = 1\ny = x / 0\n", r"ZeroDivisionError: .* \(broken_\d+.py, line 2\)"),
    ],
)
def test_a_module_that_cannot_be_used_is_one_line(add, text, message):
    # Each text has a module of its own, because Python keeps compiled modules by name.
    name = f"broken_{abs(hash(text))}"
    made = add(name, text)
    with pytest.raises(ValueError, match=message) as caught:
        made(kind=name)
    assert "Traceback" not in str(caught.value)
