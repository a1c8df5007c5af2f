"""What an import records, and which runs would overwrite imported results."""

import json
import shutil

import pytest
from travelling import small_study, two_places, write_results

from hgrpo.errors import UserError
from hgrpo.workflow.exchange.imports import imported_parts, origin, read_imports, record_import
from hgrpo.workflow.exchange.manifest import START
from hgrpo.workflow.exchange.overwrites import check_overwrites, overwrites

REVISION = "abc1234"
ROUND = "rl/Progressive/seed_11/round_1"
JOBS = [("rl_round", ROUND), ("evaluate", "eval/Progressive/seed_11/round_1"), ("report", "report")]


@pytest.fixture
def two(tmp_path, monkeypatch):
    monkeypatch.setattr("hgrpo.workflow.exchange.pack.revision", lambda: REVISION)
    return two_places(tmp_path)


def test_imported_results_are_known_until_they_are_made_anew_or_moved(two):
    here = two.here
    two.give()
    assert origin(ROUND, here, read_imports(here)).archive == "ben.tar"
    parts = json.loads(imported_parts(small_study(), here))
    assert {
        (each["part"], *each["seeds"], each["archive"], each["revision"]) for each in parts
    } == {
        *((stage, "ben.tar", REVISION) for stage in START[1:]),
        ("SFTOnly", "ben.tar", REVISION),
        ("Progressive", 11, "ben.tar", REVISION),
    }
    write_results(here, "mine", start=False)
    assert origin(ROUND, here, read_imports(here)) is None
    parts = json.loads(imported_parts(small_study(), here))
    assert {each["part"] for each in parts} == {*START[1:]}
    (here / "rl").rename(here / "mine")
    assert origin(ROUND, here, read_imports(here)) is None
    assert overwrites(small_study(), here, JOBS) == ""


def test_results_that_were_here_before_an_import_are_not_called_imported(two):
    here = two.here
    write_results(here, "theirs")
    two.give()
    assert imported_parts(small_study(), here) == "[]" and not (here / "imports").exists()


def test_a_record_of_an_import_that_was_killed_keeps_what_it_placed(two):
    here = two.here
    manifest = two.give()
    record_import(two.archive, manifest, here, [f"{ROUND}/turns.parquet"])
    (record,) = read_imports(here)
    assert f"{ROUND}/summary.json" in record.files and "data/files.json" not in record.files


def test_a_damaged_record_is_named(two):
    here = two.here
    two.give()
    (path,) = (here / "imports").iterdir()
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(UserError, match=f"{path}: archive: Field required"):
        read_imports(here)


def test_a_run_that_would_overwrite_imported_results_is_refused_with_all_that_one_needs(two):
    here = two.here
    two.give()
    changed = small_study(**{"training.lr": "0.5", "methods": "SFTOnly,Progressive"})
    with pytest.raises(UserError) as refused:
        check_overwrites(changed, here, JOBS)
    said = str(refused.value)
    assert "Progressive, seed 11, imported from ben.tar (made at revision abc1234): " in said
    assert "training.lr: " in said and " in the archive, 0.5 now" in said
    assert f"  {here}/rl/Progressive/seed_11\n  {here}/eval/Progressive/seed_11" in said
    assert "configs/studies/smoke.yaml" in said
    assert "SFTOnly" not in said and "report" not in said
    write_results(here, "mine", start=False)
    check_overwrites(changed, here, JOBS)


def test_the_start_is_guarded_too_and_a_lost_file_has_a_word(two):
    here = two.here
    two.give()
    said = overwrites(small_study(), here, [("sft", "sft"), ("study_config", "")])
    assert "  sft, imported from ben.tar (made at revision abc1234): a file is missing" in said
    assert said.endswith(f"\n  {here}/sft")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sft.epochs": "9"}, "sft: sft.epochs: 1.0 in the archive, 9.0 now"),
        # The hash of its weights decides, and that a run finds in the files that it reads.
        ({"sft.adapter": "/shared/sft"}, "a file is missing, what these jobs read has changed, or"),
    ],
)
def test_an_arm_whose_start_changed_is_refused_with_the_key(two, changes, said):
    two.give()
    found = overwrites(small_study(**changes), two.here, [("rl_round", ROUND)])
    assert (
        f"Progressive, seed 11, imported from ben.tar (made at revision abc1234): {said}" in found
    )


def test_what_is_missing_is_named_with_the_archive_that_restores_it(two):
    two.give()
    shutil.rmtree(two.here / "base")
    found = overwrites(small_study(), two.here, [("base", "base"), ("rl_round", ROUND)])
    assert "(made at revision abc1234): files of base/ are missing\n" in found
    assert (
        f"\nImport ben.tar again to restore {two.here}/base/ and keep everything: "
        "python -m hgrpo.cli.import_results ben.tar\n"
    ) in found
    # If a setting changed too, to import again would be refused.
    changed = small_study(**{"training.lr": "0.5"})
    found = overwrites(changed, two.here, [("base", "base"), ("rl_round", ROUND)])
    assert "training.lr: " in found and "Import ben.tar again" not in found
