"""A report is kept before a run of fewer rounds, seeds or arms replaces it."""

import pytest
import yaml

from hgrpo.workflow.earlier_report import FOLDER, keep_report

BEFORE = {"rounds": 5, "seeds": [11, 23], "methods": {"A": {}, "B": {}}}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "report/tables").mkdir(parents=True)
    (tmp_path / "report/report.html").write_text("five rounds", encoding="utf-8")
    (tmp_path / "report/tables/methods.csv").write_text("A\n", encoding="utf-8")
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(BEFORE), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rounds": 2}, "rounds 3 to 5"),
        ({"seeds": [11]}, "seed 23"),
        ({"methods": {"B": {}, "C": {}}}, "method A"),
        ({"rounds": 4, "seeds": [5]}, "round 5 and seeds 11, 23"),
    ],
)
def test_a_smaller_run_keeps_what_it_replaces(root, changes, said):
    found = keep_report(root, BEFORE | changes)
    (kept,) = (root / FOLDER).iterdir()
    page = root / "report/report.html"
    assert found == (
        f"this run replaces {page} by a report without {said}; the earlier report is in {kept}"
    )
    assert (kept / "report.html").read_text(encoding="utf-8") == "five rounds"
    assert (kept / "tables/methods.csv").read_text(encoding="utf-8") == "A\n"
    assert yaml.safe_load((kept / "config.yaml").read_bytes()) == BEFORE
    assert keep_report(root, BEFORE | changes)
    assert list((root / FOLDER).iterdir()) == [kept]


@pytest.mark.parametrize("changes", [{}, {"rounds": 6}, {"seeds": [23, 11, 5]}])
def test_a_run_that_holds_all_of_it_keeps_nothing(root, changes):
    assert keep_report(root, BEFORE | changes) == ""
    assert not (root / FOLDER).exists()


@pytest.mark.parametrize("config", ["", "[", "rounds: 5", "rounds: x\nseeds: 1\nmethods: 2\n"])
def test_without_a_readable_study_or_page_there_is_nothing_to_keep(root, config):
    (root / "config.yaml").write_text(config, encoding="utf-8")
    assert keep_report(root, BEFORE | {"rounds": 1}) == ""
    (root / "config.yaml").write_text(yaml.safe_dump(BEFORE), encoding="utf-8")
    (root / "report/report.html").unlink()
    assert keep_report(root, BEFORE | {"rounds": 1}) == ""
