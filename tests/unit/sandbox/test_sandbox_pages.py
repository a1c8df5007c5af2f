"""Pages of the sandbox that are made from its code: they say what the code says."""

import sandbox_pages


def test_the_pages_in_the_tree_are_those_of_the_code(project):
    files = {path.stem: path for path in sorted((project / "configs/sandbox").glob("*.yaml"))}
    folder = project / "docs/sandbox"
    assert (folder / "rules.md").read_text() == sandbox_pages.rules_page(), "run `make schema`"
    assert (folder / "runs.md").read_text() == sandbox_pages.runs_page(files), "run `make schema`"


def test_a_rule_shows_the_formulas_it_calls_through_helpers():
    from hgrpo.sandbox.rl.rules.dg import fresh_dg

    names = [each.__name__ for each in sandbox_pages.formulas(fresh_dg, "hgrpo.sandbox.rl.rules")]
    assert names == ["freshness", "dg_gates", "policy_gradient"]


def test_every_rule_has_a_row_and_nearly_every_one_a_source():
    rows = [line.split(" | ") for line in sandbox_pages.rules_page().splitlines() if "| `" in line]
    assert len({row[0] for row in rows}) == len(rows) == 31 + 6 + 3 + 3
    silent = {row[0].strip("| `") for row in rows if not row[3].strip()}
    # Cross-entropy needs none; the truncated divergences are the original's own.
    assert silent == {"CE", "OPDTopKReverseKL", "OPDTopKRenormalised", "OPDTopKTail"} | {
        "OPDTopKForwardKL"
    }
