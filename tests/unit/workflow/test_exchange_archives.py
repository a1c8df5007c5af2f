"""What an import refuses, and what its refusals say."""

import json
from pathlib import Path

import pytest
from travelling import small_study, two_places, write_results

from hgrpo.errors import UserError
from hgrpo.workflow.exchange import other_code
from hgrpo.workflow.exchange.manifest import (
    Made,
    Manifest,
    content_hash,
    exchanged_jobs,
    made_with,
    sha256,
)


@pytest.fixture
def two(tmp_path):
    return two_places(tmp_path)


def test_seconds_and_machines_are_no_difference(two):
    there, here = two.there, two.here
    write_results(here, "theirs")
    for folder, rate in ((there, "x"), (here, "y")):
        (folder / "assets/timing.json").write_text(json.dumps({"s": rate}), encoding="utf-8")
        summary = {"weights": "same", "revision": rate, "hardware": {"cores": rate}}
        (folder / "sft/summary.json").write_text(json.dumps(summary), encoding="utf-8")
        log = {"rows": [{"loss": 1.5, "update_s": rate}], "finished": rate}
        trained = folder / "rl/Progressive/seed_11/round_1/train_log.json"
        trained.parent.mkdir(parents=True, exist_ok=True)
        trained.write_text(json.dumps(log), encoding="utf-8")
    two.give()
    assert json.loads((here / "assets/timing.json").read_bytes()) == {"s": "y"}
    (here / "expert/summary.json").write_text(json.dumps({"trajectories": 7}), encoding="utf-8")
    with pytest.raises(UserError, match=r"first move to another place: .*/results/smoke/expert$"):
        two.give()


def test_the_seconds_of_a_copy_do_not_travel(two):
    name = "benchmarks/rl_round/Progressive.seed_11.round_{}.jsonl"
    for number in (1, 2):
        path = two.there / name.format(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"s": 2.0}), encoding="utf-8")
    record = {"key": "k", "files": {}, "taken_from": "results/other/rl"}
    (two.there / "rl/Progressive/seed_11/round_1/.finished.json").write_text(
        json.dumps(record), encoding="utf-8"
    )
    # Round 1 was copied from another study there; its record stays there.
    files = two.give().files
    assert name.format(1) not in files and name.format(2) in files
    assert "rl/Progressive/seed_11/round_1/.finished.json" not in files


def test_other_results_of_the_same_job_are_refused_with_the_folders_to_move(two):
    here = two.here
    two.give()
    write_results(here, "mine", start=False)
    with pytest.raises(UserError) as refused:
        two.give()
    said = str(refused.value)
    *_, folders = said.partition("first move to another place: ")
    assert set(folders.split()) == {
        f"{here}/{run}"
        # The evaluation that serves every seed stays.
        for run in ("rl/Progressive/seed_11", "eval/Progressive/seed_11")
    }
    for folder in folders.split():
        Path(folder).rename(here / folder.replace("/", "."))
    two.give()


def made(code: str, **modules: str) -> Made:
    return Made(settings={}, code=code, modules=modules)


@pytest.mark.parametrize(
    ("theirs", "mine", "said"),
    [
        ("abc", "def", "made at revision abc by code that differs in a, c; yours is revision def"),
        ("abc", "def", "; this concerns rl_round of Mine; check out abc"),
        ("abc", "abc-dirty", "yours is revision abc with uncommitted edits; "),
        ("abc", "abc-dirty", "check out abc, without edits"),
        ("abc-dirty", "abc", "made at revision abc with uncommitted edits by code"),
        (
            "abc-dirty",
            "abc",
            "commit the edits there, export again, and check out that commit here",
        ),
        (None, None, "made at an unknown revision of hgrpo 0.1.0 by code that differs in a, c; "),
        (None, None, "yours is an unknown revision; "),
    ],
)
def test_other_code_is_refused_with_revisions_and_modules(monkeypatch, theirs, mine, said):
    monkeypatch.setattr(other_code, "revision", lambda: mine)
    there = {"rl_round": {"Mine": made("1", a="1", b="1")}, "sft": {"": made("1", a="1")}}
    here = {"rl_round": {"Mine": made("2", a="2", b="1", c="1")}, "sft": {"": made("1", a="1")}}
    manifest = Manifest(
        format=2,
        study="smoke",
        methods=["Mine"],
        seeds=[11],
        rounds=1,
        made=there,
        shared={},
        packages={"hgrpo": "0.1.0"},
        revision=theirs,
        files={},
    )
    (line,) = other_code.other_code_lines(manifest, there, here)
    assert said in line


def test_of_many_modules_some_are_named():
    assert other_code.few("fedcba") == "a, b, c, d and 2 more"
    assert other_code.changed_modules(Made(settings={}, code="1"), made("2", a="1")) == []


def test_what_a_job_would_be_made_with_names_its_modules(tmp_path):
    found = made_with(small_study(), exchanged_jobs(small_study(), tmp_path, False))
    modules = found["rl_round"]["Progressive"].modules
    assert "hgrpo.learning.round" in modules and "hgrpo.workflow.rules" not in modules


def test_the_hash_of_a_content_leaves_out_where_it_was_made(tmp_path):
    path = tmp_path / "x.json"
    hashes = []
    for text in ('{"a": 1, "python": "3"}', '{"python": "4", "a": 1}', '{"a": 2}', "no JSON"):
        path.write_text(text, encoding="utf-8")
        hashes.append(content_hash(path))
    assert hashes[0] == hashes[1] != hashes[2] and hashes[3] == sha256(path)
