"""The hash of a run's code covers the rule that the run names, and no other rule."""

import pytest

from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.stages.order import STAGES
from hgrpo.workflow.code_version import contents, modules_of
from hgrpo.workflow.sandbox_rules import run_code, run_id

FORMULAS = "hgrpo.formulas"


def test_a_rule_reaches_its_own_formulas_and_helpers():
    roots = (f"{FORMULAS}.dg:DG", f"{FORMULAS}.fresh_dg:FreshDG")
    plain, fresh = (set(contents([root])) for root in roots)
    assert f"{FORMULAS}.dg:dg_gates" in plain & fresh or f"{FORMULAS}.dg:Gate" in fresh
    assert f"{FORMULAS}.pg:policy_gradient" in plain
    assert f"{FORMULAS}.pg:weighted" in fresh - plain
    assert not {f"{FORMULAS}.dg", f"{FORMULAS}.pg", f"{FORMULAS}.aspo"} & fresh
    assert f"{FORMULAS}.fresh_dg:FreshDG" in fresh - plain


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("own * 2", "own * 3", {"one"}),
        ("return HALF", "return 2 * HALF", {"other"}),
        ("HALF = 0.5", "HALF = 0.25", {"other"}),
        ("seen + 1", "seen + 2", {"one", "other"}),
        ('"""A helper."""', '"""A helper that helps."""', set()),
    ],
)
def test_an_edit_counts_for_the_functions_that_reach_it(tmp_path, old, new, changed):
    package = tmp_path / "hgrpo"
    rules = package / "piece/rules"
    rules.mkdir(parents=True)
    (rules / "both.py").write_text(
        "from hgrpo.piece.rules.helper import helped\nHALF = 0.5\n"
        "def one(seen, own):\n    return helped(own * 2)\n"
        "def half():\n    return HALF\n"
        "def other(seen, own):\n    return helped(half())\n",
        encoding="utf-8",
    )
    (rules / "helper.py").write_text(
        'def helped(seen):\n    """A helper."""\n    return seen + 1\n', encoding="utf-8"
    )
    edited = tmp_path / "edited/hgrpo"
    for name in ("both", "helper"):
        text = (rules / f"{name}.py").read_text(encoding="utf-8").replace(old, new)
        target = edited / f"piece/rules/{name}.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def parts(name, root):
        return contents([f"hgrpo.piece.rules.both:{name}"], package=root)

    names = ("one", "other")
    assert {name for name in names if parts(name, package) != parts(name, edited)} == changed


def test_runs_differ_by_settings_and_rule_but_not_by_what_only_permits_them():
    base = {"task": "token_reversal", "seeds": (0, 1)}
    dg, fresh = RlSettings(**base), RlSettings(**base, method="FreshDG", replay_capacity=4)
    assert run_code("rl", dg) != run_code("rl", fresh)
    assert run_code("rl", dg) == run_code("rl", RlSettings(**base, lr=0.1))
    assert run_id("rl", dg) != run_id("rl", RlSettings(**base, lr=0.1))
    assert run_id("rl", dg) == run_id("rl", RlSettings(**base, allow_degenerate=True))
    full = OpdSettings()
    both = OpdSettings(phases=({}, {"method": "OPDPG", "start": 3}), allow_degenerate=True)
    assert run_code("opd", full) != run_code("opd", both)


def test_no_stage_of_the_agents_runs_the_sandbox():
    for stage in STAGES:
        found = modules_of(stage, {"env": {"name": "alfworld"}, "engine": {"kind": "torch"}})
        assert not [name for name in found if name.startswith("hgrpo.sandbox")], stage
