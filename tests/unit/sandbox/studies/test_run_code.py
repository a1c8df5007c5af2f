"""The hash of a run's code covers the rule that the run names, and no other rule."""

from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.stages.order import STAGES
from hgrpo.store.code import closure, roots
from hgrpo.workflow.sandbox_rules import run_code, run_id

FORMULAS = "hgrpo.formulas"


def test_a_rule_reaches_its_own_formulas_and_helpers():
    plain, fresh = (set(closure([f"{FORMULAS}.{name}"])) for name in ("pg", "dg_variants"))
    assert {f"{FORMULAS}.dg_variants", f"{FORMULAS}.dg", f"{FORMULAS}.pg"} <= fresh
    assert not {f"{FORMULAS}.dg_variants", f"{FORMULAS}.dg"} & plain


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
        modules = closure(roots(stage, {"env": {"name": "alfworld"}, "engine": {"kind": "torch"}}))
        assert not [name for name in modules if name.startswith("hgrpo.sandbox")], stage
