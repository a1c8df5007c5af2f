"""Two people, two checkouts, one report: results are exported, imported, and not made again."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from hashlib import sha256

import pytest
import yaml
from grid_study import declare
from project_copy import paths_below

from hgrpo.workflow.study_lock import hold_study

pytestmark = pytest.mark.slow

TEAM = {
    "name": "team",
    "env": "alfworld-laptop",
    "model": "tiny",
    "methods": ["SFTOnly", "flatGRPO", "TurnRDV2", "LLMJudge", "Progressive"],
    "seeds": [11, 23],
    "rounds": 2,
}


def copy(finished, root):
    shutil.copytree(finished.root, root, symlinks=True)
    shutil.rmtree(root / "results")
    shutil.rmtree(root / ".snakemake", ignore_errors=True)
    (root / "configs/studies/team.yaml").write_text(yaml.safe_dump(TEAM), encoding="utf-8")
    return type(finished)(root, finished.forks)


def command(checkout, name, *words):
    env = os.environ | {"PYTHONPATH": str(checkout.root)}
    return subprocess.run(
        [sys.executable, "-m", f"hgrpo.cli.{name}", *words],
        cwd=checkout.root,
        env=env,
        capture_output=True,
        encoding="utf-8",
    )


def share(checkout, *words):
    """Export, and return the archive; one of the same name from before is removed."""
    (checkout.root / "new/folder/share.tar").unlink(missing_ok=True)
    done = command(checkout, "export", "study=team", *words, "--out", "new/folder/share.tar")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^new/folder/share.tar: study team; .* \d+ files, [\d.]+ [kM]B$", done.stdout)
    return checkout.root / "new/folder/share.tar"


def train(checkout, *settings):
    done = checkout.snakemake("evaluations", "study=team", *settings)
    assert done.returncode == 0, done.stdout + done.stderr


# What a run of other arms plans always.
CONFIG = {"Resolved configuration of the study"}


@pytest.fixture(scope="module")
def people(finished, tmp_path_factory):
    """A trained flatGRPO and TurnRDV2 with seed 11; B, from A's start, two other methods."""
    root = tmp_path_factory.mktemp("people")
    ann, ben = copy(finished, root / "ann"), copy(finished, root / "ben")
    train(ann, "methods=SFTOnly,flatGRPO,TurnRDV2", "seeds=11")
    start = share(ann, "methods=SFTOnly", "seeds=11", "--start")
    done = command(ben, "import_results", str(start))
    assert done.returncode == 0, done.stderr
    train(ben, "methods=LLMJudge,Progressive", "seeds=11,23")
    return ann, ben


@pytest.fixture
def two(people, tmp_path):
    """Copies of both checkouts, free to be edited."""
    made = []
    for person in people:
        root = tmp_path / person.root.name
        shutil.copytree(person.root, root, symlinks=True)
        made.append(type(person)(root, person.forks))
    return made


def test_a_start_that_was_imported_is_not_made_again(people):
    _, ben = people
    log = ben.root / "results/team/logs/sft/sft.log"
    assert log.is_file()  # it came with the archive
    assert ben.planned("evaluations", "study=team", "methods=LLMJudge,Progressive") == set()


def test_imported_results_make_one_report_and_nothing_runs_again(two):
    ann, ben = two
    archive = share(ben, "methods=LLMJudge,Progressive", "seeds=11,23")
    done = command(ann, "import_results", str(archive))
    assert done.returncode == 0, done.stderr
    assert "LLMJudge, Progressive; seeds 11, 23; 2 rounds" in done.stdout
    planned = ann.planned("study=team", "seeds=11")
    assert not [job for job in planned if "round" in job or "fit" in job], planned
    declare(ann.root, ("team", {"seeds": "11"}))
    done = ann.snakemake("study=team", "seeds=11")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (ann.root / "results/team/report/report.html").is_file()
    # An edit afterwards plays the imported arm again, and no other.
    ann.edit("configs/methods/Progressive.yaml", "alpha: 0.5", "alpha: 0.4")
    planned = ann.planned("study=team", "seeds=11")
    assert "Progressive, seed 11: round 1" in planned
    assert not [job for job in planned if job.startswith("LLMJudge")]


def test_a_second_import_changes_nothing(two):
    ann, ben = two
    archive = share(ben, "methods=LLMJudge", "seeds=11")
    assert command(ann, "import_results", str(archive)).returncode == 0
    again = command(ann, "import_results", str(archive))
    assert again.returncode == 0 and ": 0 of " in again.stdout


def test_another_alpha_is_refused_by_name(two):
    ann, ben = two
    ben.edit("configs/methods/Progressive.yaml", "alpha: 0.5", "alpha: 0.3")
    train(ben, "methods=LLMJudge,Progressive", "seeds=11")
    archive = share(ben, "methods=LLMJudge,Progressive", "seeds=11")
    before = sorted((ann.root / "results").rglob("*"))
    done = command(ann, "import_results", str(archive))
    assert done.returncode == 2
    assert done.stderr == (
        f"error: {archive}: Progressive, rl_round: method.alpha: 0.3 there, 0.5 here\n"
    )
    assert sorted((ann.root / "results").rglob("*")) == before


@pytest.mark.parametrize("words", [["sft.epochs=2"], []])
def test_arms_from_a_start_of_other_settings_are_refused_by_name(two, judged, words):
    ann, _ = two
    if not words:
        study = ann.root / "configs/studies/team.yaml"
        study.write_text(
            f"{study.read_text(encoding='utf-8')}sft: {{epochs: 2}}\n", encoding="utf-8"
        )
    done = command(ann, "import_results", str(judged), *words)
    assert done.returncode == 2
    assert done.stderr == f"error: {judged}: all arms, sft: sft.epochs: 1.0 there, 2.0 here\n"
    assert not (ann.root / "results/team/rl/LLMJudge").exists()


def test_one_who_took_the_policy_from_a_folder_imports_arms_that_start_from_it(two, judged):
    ann, _ = two
    given = command(ann, "import_results", str(judged), "sft.adapter=/shared/sft")
    assert given.returncode == 0, given.stderr


def test_a_lost_part_of_the_start_is_restored_by_the_same_archive(two):
    ann, ben = two
    shutil.rmtree(ben.root / "results/team/base")
    arms = ("study=team", "methods=LLMJudge,Progressive", "seeds=11,23")
    said = [
        "  sft, imported from share.tar (made at an unknown revision of hgrpo ",
        "files of base/ are missing",
        "Import share.tar again to restore results/team/base/ and keep everything: "
        "python -m hgrpo.cli.import_results share.tar\n",
    ]
    for printed in (
        ben.snakemake(*arms).stderr,
        command(ben, "plan", *arms).stderr,
    ):
        assert "error: this run would overwrite imported results" in printed
        assert [words for words in said if words not in printed] == [], printed
    again = command(ben, "import_results", str(ann.root / "new/folder/share.tar"))
    assert again.returncode == 0, again.stderr
    assert ben.planned("evaluations", *arms) == set()


def test_other_code_and_another_sft_policy_are_refused(two):
    ann, ben = two
    archive = share(ben, "methods=LLMJudge", "seeds=11")
    (ann.root / "results/team/sft/summary.json").write_text("of another SFT run", encoding="utf-8")
    ann.edit("hgrpo/learning/round.py", "import time", "import time\n\nCHANGED = 1")
    said = command(ann, "import_results", str(archive)).stderr
    assert "made at an unknown revision of hgrpo " in said
    assert "by code that differs in hgrpo.learning.round; yours is an unknown revision" in said
    assert "this concerns rl_round of LLMJudge; check out the same revision" in said
    assert "SFT policy: sft/summary.json differs from results/team/sft/summary.json" in said


def test_without_a_start_the_message_says_how_to_get_one(two, finished, tmp_path):
    _, ben = two
    archive = share(ben, "methods=LLMJudge", "seeds=11")
    new = copy(finished, tmp_path / "new")
    done = command(new, "import_results", str(archive))
    assert done.returncode == 2
    assert "SFT policy: results/team/sft/summary.json is not there yet" in done.stderr


def test_other_results_of_the_same_job_are_not_overwritten(two):
    ann, ben = two
    archive = share(ben, "methods=LLMJudge", "seeds=11")
    assert command(ann, "import_results", str(archive)).returncode == 0
    path = ann.root / "results/team/rl/LLMJudge/seed_11/round_1/turns.parquet"
    path.write_text("mine", encoding="utf-8")
    done = command(ann, "import_results", str(archive))
    assert done.returncode == 2 and "here are other results of the same job" in done.stderr
    assert path.read_text(encoding="utf-8") == "mine"
    # What the message says to move is all that stands in the way.
    (folder,) = done.stderr.strip().partition("first move to another place: ")[2].split()
    assert folder == "results/team/rl/LLMJudge/seed_11"
    (ann.root / folder).rename(ann.root / "mine")
    done = command(ann, "import_results", str(archive))
    assert done.returncode == 0, done.stderr
    assert ann.planned("evaluations", "study=team", "methods=LLMJudge", "seeds=11") == CONFIG


def test_a_run_overwrites_no_imported_results(two, judged):
    ann, _ = two
    assert command(ann, "import_results", str(judged)).returncode == 0
    results = ann.root / "results/team"
    before = {
        path: path.read_bytes() for path in results.glob("*/LLMJudge/*/*/*") if path.is_file()
    }
    run = ("evaluations", "study=team", "methods=SFTOnly,LLMJudge", "set=training.lr=0.5")
    done = ann.snakemake(*run)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "error: this run would overwrite imported results" in said
    assert "  LLMJudge, seed 11, imported from share.tar" in said and "0.5 now" in said
    assert "  results/team/rl/LLMJudge/seed_11\n  results/team/eval/LLMJudge/seed_11" in said
    assert {path: path.read_bytes() for path in before} == before
    planned = command(ann, "plan", "study=team", "methods=SFTOnly,LLMJudge", "training.lr=0.5")
    assert planned.returncode == 2 and "core-h" in planned.stdout
    assert planned.stderr.startswith("error: this run would overwrite imported results")
    # Ann's own results of another arm run again as before, and after a move the imported arm too.
    own = ("evaluations", "study=team", "methods=SFTOnly,flatGRPO", "set=training.lr=0.5")
    done = ann.snakemake(*own)
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in ("rl", "eval"):
        (results / kind / "LLMJudge/seed_11").rename(ann.root / kind)
    done = ann.snakemake(*run)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_equal_start_with_other_seconds_is_no_difference(two, tmp_path):
    ann, ben = two
    timing = ben.root / "results/team/assets/timing.json"
    timing.write_text('{"s": 1}', encoding="utf-8")
    archive = share(ann, "methods=SFTOnly", "seeds=11", "--start")
    done = command(ben, "import_results", str(archive))
    assert done.returncode == 0, done.stderr
    assert timing.read_text(encoding="utf-8") == '{"s": 1}'


def test_unfinished_results_are_not_exported(two):
    ann, _ = two
    done = command(ann, "export", "study=team", "methods=flatGRPO", "seeds=11,23")
    assert done.returncode == 2
    assert "flatGRPO seed 23 round 1: not finished, or out of date" in done.stderr
    assert not list(ann.root.glob("team-*.tar"))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("cut", "damaged archive ("),
        ("byte", ": damaged"),
        ("other", "rl/extra: not in export.json"),
        ("none", "no such file"),
        ("edited", "export.json: damaged, or edited after the export: it does not match export."),
        ("format", "export.json: damaged, or edited after the export: it does not match export."),
        ("unchecked", "export.json.sha256: missing; ask for the archive again"),
    ],
)
def test_a_damaged_archive_changes_nothing(two, damage, said):
    ann, ben = two
    archive = share(ben, "methods=LLMJudge", "seeds=11")
    content = bytearray(archive.read_bytes())
    if damage == "cut":
        # Inside a file: between two files the message would be another.
        archive.write_bytes(content[: content.rindex(b"rl_round ")])
    elif damage == "byte":
        content[content.rindex(b"rl_round ")] ^= 1
        archive.write_bytes(content)
    elif damage == "other":
        with tarfile.open(archive, "a") as opened:
            extra = ann.root / "extra"
            extra.write_text("not listed", encoding="utf-8")
            opened.add(extra, arcname="rl/extra")
    elif damage in EDITS:
        old, new = EDITS[damage]
        archive.write_bytes(content.replace(old, new, 1))
    elif damage == "unchecked":
        forged(archive, archive, {}, checked=False)
    else:
        archive.unlink()
    before = sorted((ann.root / "results").rglob("*"))
    done = command(ann, "import_results", str(archive))
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert said in done.stderr
    assert sorted((ann.root / "results").rglob("*")) == before


@pytest.fixture(scope="module")
def judged(people, tmp_path_factory):
    """An archive of B's LLMJudge with seed 11; tests must not write to it."""
    archive = tmp_path_factory.mktemp("judged") / "share.tar"
    return share(people[1], "methods=LLMJudge", "seeds=11").rename(archive)


def forged(archive, target, changes, checked=True):
    """A copy of an archive that says something else of itself; `checked`, with its checksum."""
    with tarfile.open(archive) as opened:
        members = {member.name: opened.extractfile(member).read() for member in opened}
    members.pop("export.json.sha256")
    manifest = json.loads(members.pop("export.json")) | changes
    if "files" in changes:
        manifest["files"] = {name: sha256(text).hexdigest() for name, text in members.items()}
        manifest["files"] |= changes["files"]
        members |= dict.fromkeys(changes["files"], b"")
    with tarfile.open(target, "w") as opened:
        text = {"export.json": json.dumps(manifest).encode()}
        if checked:
            digest = sha256(text["export.json"]).hexdigest()
            text["export.json.sha256"] = f"{digest}  export.json\n".encode()
        for name, content in (text | members).items():
            head = tarfile.TarInfo(name)
            head.size = len(content)
            opened.addfile(head, io.BytesIO(content))
    return target


EMPTY = sha256(b"").hexdigest()
# What is damaged -> bytes of export.json, and others in their place.
EDITS = {"edited": (b'"rounds": 2', b'"rounds": 3'), "format": (b'"format": 3', b'"format": 2')}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"study": "../studies/team"}, "export.json: study: String should match pattern"),
        ({"methods": ["../LLMJudge"]}, "export.json: methods.0: String should match pattern"),
        ({"format": 4}, "export.json: format: Input should be less than or equal to 3"),
        ({"files": {"../outside": EMPTY}}, "../outside: no file of the exported jobs"),
        ({"files": {"/outside": EMPTY}}, "/outside: no file of the exported jobs"),
        ({"files": {"report/report.html": EMPTY}}, "report/report.html: no file of the exported"),
        ({"files": {"rl/LLMJudge/seed_11/round_1/.x": EMPTY}}, "round_1/.x: no file of the export"),
        ({"seeds": [11, 23]}, "eval/LLMJudge/seed_23/round_1/episodes.parquet: missing"),
        ({"made": {"dance": {"": {"settings": {}, "code": "0"}}}}, "all arms, dance: only there"),
        ({"made": {}}, "LLMJudge, rl_round: only here"),
    ],
)
def test_an_archive_that_is_not_what_it_says_is_refused(people, judged, tmp_path, changes, said):
    ann = people[0]
    archive = forged(judged, tmp_path / "forged.tar", changes)
    before = paths_below(ann.root.parent)
    done = command(ann, "import_results", str(archive))
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    assert paths_below(ann.root.parent) == before


def test_results_that_are_links_travel_as_files(two):
    # Snakemake's cache hands out links, and a copy of results may consist of hard links.
    ann, ben = two
    folder = ben.root / "results/team/rl/LLMJudge/seed_11/round_1"
    (folder / "train_log.json").rename(ben.root / "log")
    (folder / "train_log.json").symlink_to(ben.root / "log")
    (folder / "summary.json").unlink()
    (folder / "summary.json").hardlink_to(folder / "turns.parquet")
    jobs = "results/team/eval/LLMJudge/seed_11/round_2/episodes.parquet"
    ben.snakemake(jobs, "--touch", "--force", "study=team", "methods=LLMJudge", "seeds=11")
    archive = share(ben, "methods=LLMJudge", "seeds=11")
    done = command(ann, "import_results", str(archive))
    assert done.returncode == 0, done.stderr
    there = ann.root / "results/team/rl/LLMJudge/seed_11/round_1"
    assert not (there / "train_log.json").is_symlink()
    assert (there / "summary.json").read_text(encoding="utf-8") == (
        folder / "turns.parquet"
    ).read_text(encoding="utf-8")


def test_what_is_out_of_date_here_stays_so(two, judged):
    ann, _ = two
    (ann.root / "results/team/base/model.safetensors").write_text("other weights", encoding="utf-8")
    stale = ann.planned("results/team/sft/summary.json", "study=team")
    assert stale == {"Supervised fine-tuning"}
    assert command(ann, "import_results", str(judged)).returncode == 0
    assert ann.planned("results/team/sft/summary.json", "study=team") == stale


def test_the_same_weights_are_the_same_policy_whoever_trained_them(two, judged, tmp_path):
    ann, _ = two
    summary = ann.root / "results/team/sft/summary.json"
    policies = {name: {"weights": name, "hardware": "mine"} for name in ("equal", "other")}
    with tarfile.open(judged) as opened:
        shared = json.loads(opened.extractfile("export.json").read())["shared"]
    archive = forged(judged, tmp_path / "forged.tar", {"shared": shared | {"SFT policy": "equal"}})
    summary.write_text(json.dumps(policies["other"]), encoding="utf-8")
    said = command(ann, "import_results", str(archive)).stderr
    assert "SFT policy: sft/summary.json differs" in said
    summary.write_text(json.dumps(policies["equal"]), encoding="utf-8")
    assert command(ann, "import_results", str(archive)).returncode == 0


def test_a_killed_import_leaves_nothing_that_the_next_one_does_not_mend(two, judged):
    ann, _ = two
    results = ann.root / "results/team"
    killed = (
        "import os, sys\nfrom hgrpo.workflow.exchange import pack\n"
        "replace, sys.argv = os.replace, ['import', sys.argv[1]]\n"
        "def once(source, target):\n"
        "    replace(source, target)\n"
        "    if '/rl/' in str(target):\n"
        "        os._exit(9)\n"
        "pack.os.replace = once\n"
        "from hgrpo.cli import import_results\nimport_results.main()\n"
    )
    env = os.environ | {"PYTHONPATH": str(ann.root)}
    done = subprocess.run([sys.executable, "-c", killed, str(judged)], cwd=ann.root, env=env)
    assert done.returncode == 9
    assert len(list(results.glob(".import-*"))) == 1 and (results / "rl/LLMJudge").exists()
    assert command(ann, "import_results", str(judged)).returncode == 0
    assert not list(results.glob(".import-*"))
    assert ann.planned("evaluations", "study=team", "methods=LLMJudge", "seeds=11") == CONFIG


def test_a_running_study_takes_no_import(two, judged):
    ann, _ = two
    with hold_study(ann.root / "results/team"):
        done = command(ann, "import_results", str(judged))
    assert done.returncode == 2 and "another snakemake is running this study" in done.stderr
