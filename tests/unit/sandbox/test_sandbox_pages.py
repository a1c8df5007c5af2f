"""Pages of the sandbox that are made from its code: they say what the code says."""

import pytest
import sandbox_pages

from hgrpo.formulas import kinds


def test_the_pages_in_the_tree_are_those_of_the_code(project):
    files = {path.stem: path for path in sorted((project / "configs/sandbox").glob("*.yaml"))}
    folder = project / "docs/sandbox"
    assert (folder / "rules.md").read_text(encoding="utf-8") == sandbox_pages.rules_page(), (
        "run `make schema`"
    )
    assert (folder / "runs.md").read_text(encoding="utf-8") == sandbox_pages.runs_page(files), (
        "run `make schema`"
    )


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # Through a helper.
        ("FreshDG", {"freshness", "dg_gates", "policy_gradient"}),
        # Through a mapping of the module, `_NORMS`.
        ("GRPO", {"z_scores", "centred", "ppo_clip", "ratios", "kl_k3"}),
        # `uncertain_gates` names no source, so that of `delight` is its own.
        ("UncertaintyDG", {"uncertain_gates", "delight", "dg_gates", "policy_gradient"}),
    ],
)
def test_a_rule_shows_the_formulas_it_calls(rule, expected):
    formulas = sandbox_pages.formulas(kinds.every()[rule])
    assert {each.__name__ for each in formulas} == expected


def test_every_rule_has_a_row_and_mostly_a_source():
    rows = [line.split(" | ") for line in sandbox_pages.rules_page().splitlines() if "| `" in line]
    assert len({row[0] for row in rows}) == len(rows) >= 31 + 6 + 3 + 3
    of_users = {name for name, rule in kinds.every().items() if "our own" in (rule.__doc__ or "")}
    silent = {row[0].strip("| `") for row in rows if not row[3].strip()} - of_users
    # Cross-entropy needs none; truncated divergences are the original's own, or ours.
    assert silent == {"CE", "OPDTopKReverseKL", "OPDTopKRenormalised", "OPDTopKForwardKL"}
