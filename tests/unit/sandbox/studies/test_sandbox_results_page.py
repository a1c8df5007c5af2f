"""docs/sandbox/results.md: it is made from its tables, names every study, and quotes verdicts."""

import json

import check_published
import publish_sandbox
import pytest
from study_files import rows, study

from hgrpo.errors import UserError
from hgrpo.report.words import DASH, MINUS
from hgrpo.sandbox.studies.statistics import arm_table, pair_table
from hgrpo.sandbox.studies.study import read_study

INFERENCE = {"number": 2, "said": "A beats B"}
PAIRS = [["A", "B", "better"]]
PUBLISHED = {"A": {"test_error": [0.5, 0.01]}}


@pytest.fixture
def run(tmp_path):
    """A study of ten seeds in which A ends 0.1 below B, and the folder that it wrote."""
    declared = study(seeds=10, pairs=PAIRS, inference=INFERENCE, published=PUBLISHED)
    errors = [0.2 + 0.001 * seed for seed in range(10)]
    logs = {
        "A": rows("test_error", *([1.0, e] for e in errors)),
        "B": rows("test_error", *([1.0, e + 0.1 + 0.001 * (e > 0.203)] for e in errors)),
    }
    made = tmp_path / "made"
    (made / "figures").mkdir(parents=True)
    arm_table(declared, logs, {"A": 1.0, "B": 2.0}).to_csv(made / "arms.csv", index=False)
    pair_table(declared, logs).to_csv(made / "pairs.csv", index=False)
    index = [{"name": "error", "title": "Error", "caption": "", "alt": "Error"}]
    (made / "figures/index.json").write_text(json.dumps(index), encoding="utf-8")
    (made / "figures/error.svg").write_text("<svg/>", encoding="utf-8")
    (made / "figures/error.csv").write_text("x,value\n", encoding="utf-8")
    (made / "figures/large.csv").write_bytes(bytes(200_001))
    return declared, made


def test_the_page_in_the_tree_is_made_from_its_tables_and_names_every_study(project):
    docs = project / "docs/sandbox"
    page = (docs / "results.md").read_text(encoding="utf-8")
    filled = publish_sandbox.filled(page, docs, project / "configs/sandbox")
    assert page == filled, "run `python workflow_scripts/publish_sandbox.py`"
    studies = {path.stem for path in (project / "configs/sandbox").glob("*.yaml")}
    assert {name for name in studies if f"<!-- sandbox {name} -->" not in page} == set()


def test_published_pairs_share_one_five_per_cent_and_changed_verdicts_show_the_old(project):
    tables = project / "docs/sandbox/tables"
    changed = []
    for path in sorted(tables.glob("*/pairs.csv")):
        declared = read_study(project / f"configs/sandbox/{path.parent.name}.yaml")
        pairs = publish_sandbox.judged(path, declared)
        assert check_published.differences(publish_sandbox.read_table(path), pairs) == []
        tested = pairs[pairs["kind"] == "pair"] if len(pairs) else pairs
        differ = tested[tested["verdict"] != tested["verdict_before"]] if len(tested) else tested
        changed += [(path.parent.name, row.arm, row.verdict) for row in differ.itertuples()]
    assert changed == [
        ("entropy", "GRPO", "inconclusive"),
        ("topk_warmup", "k 8, 100 steps", "inconclusive"),
    ]
    page = (project / "docs/sandbox/results.md").read_text(encoding="utf-8")
    assert page.count("(was ") == 2


def test_a_block_has_verdicts_means_the_originals_numbers_and_the_figure(run, tmp_path):
    declared, made = run
    publish_sandbox.copy(made, tmp_path, "small")
    text = publish_sandbox.block("small", declared, tmp_path)
    assert "![Error](figures/small/error.svg)\n[Numbers](figures/small/error.csv)\n" in text
    published = {path.name for path in (tmp_path / "figures/small").iterdir()}
    assert published == {"index.json", "error.svg", "error.csv"}
    pair = "| A | B | -0.101 (-0.101 to -0.1) | < 0.001 | better | - |"
    assert pair.replace("-", MINUS)[:-3] + f"{DASH} |" in text
    assert "| A | 0.204 (0.202 to 0.207) [0.5 ± 0.01]\\*, p < 0.001 |" in text
    assert "seconds" not in (tmp_path / "tables/small/arms.csv").read_text(encoding="utf-8")
    text_of_inference = publish_sandbox.inferences({"small": declared}, tmp_path)
    assert text_of_inference.startswith("**2. A beats B** ([small](#small))")
    assert "| better | better | holds |" in text_of_inference


def test_a_time_that_is_not_reached_is_called_that():
    metric = {"column": "test_error", "at": "time", "below": 0.5, "better": "lower"}
    declared = study(metric=metric)
    logs = {
        "A": rows("test_error", *[[1.0, 0.9, 0.9]] * 3, updates=[0, 10, 300]),
        "B": rows("test_error", *[[1, 0.4, 0.4]] * 2, [1, 1, 1], updates=[0, 10, 30]),
    }
    text = publish_sandbox.matrix(declared, arm_table(declared, logs, {"A": 1.0, "B": 2.0}))
    assert "| A | not within 300 |" in text
    # Two seeds after 10 updates, one followed for 30: restricted mean 50 / 3.
    assert "| B | ≥ 16.7 (" in text and " to 30), 2 of 3 seeds |" in text
    assert text.count("≥ marks a mean over seeds of which some did not reach") == 1


@pytest.mark.parametrize(("later", "warned"), [(0.0, False), (0.5, True)])
def test_an_a_a_pair_that_differs_is_pointed_out(later, warned):
    ends = [0.1, 0.2, 0.3]
    logs = {
        "A": rows("test_error", *([1.0, e] for e in ends)),
        "B": rows("test_error", *([1.0, e] for e in ends)),
        "A, other seeds": rows("test_error", *([1.0, e + later] for e in reversed(ends))),
    }
    text = publish_sandbox.compared(pair_table(study(again="A"), logs))
    assert "\n\n`A` with other seeds minus `A`, not paired: " in text
    assert ("By chance, 5 % of such intervals exclude 0" in text) is warned


def test_an_equivalent_pair_shows_the_p_value_of_equivalence():
    metric = {"column": "test_error", "margin": 0.5}
    ends = {"A": (0.1, 0.2, 0.3), "B": (0.1, 0.21, 0.32)}
    logs = {arm: rows("test_error", *([1.0, e] for e in values)) for arm, values in ends.items()}
    table = pair_table(study(metric=metric), logs)
    assert table["p_holm"].item() > 0.1 and table["p_equivalent_holm"].item() < 0.001
    assert "| < 0.001 | equivalent |" in publish_sandbox.compared(table)


def test_what_has_not_run_says_so_and_two_seeds_are_refused(run, tmp_path):
    declared, made = run
    assert publish_sandbox.block("small", declared, tmp_path) == publish_sandbox.NOT_RUN
    arms = made / "arms.csv"
    arms.write_text(arms.read_text(encoding="utf-8").replace(",A,10,", ",A,2,"), encoding="utf-8")
    with pytest.raises(UserError, match="2 seeds"):
        publish_sandbox.copy(made, tmp_path, "small")
    page = "<!-- sandbox smal -->\n<!-- end -->"
    with pytest.raises(UserError, match="smal"):
        publish_sandbox.filled(page, tmp_path, tmp_path)
