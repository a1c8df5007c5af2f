"""Two people, two checkouts, one report: results are exported, imported, and not made again."""

import json
import os
import shutil
import subprocess
import sys
import tarfile

import pytest
import yaml
from conftest import declare

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
    (root / "configs/studies/team.yaml").write_text(yaml.safe_dump(TEAM))
    return type(finished)(root, finished.forks)


def command(checkout, name, *words):
    env = os.environ | {"PYTHONPATH": str(checkout.root)}
    return subprocess.run(
        [sys.executable, "-m", f"hgrpo.cli.{name}", *words],
        cwd=checkout.root,
        env=env,
        capture_output=True,
        text=True,
    )


def share(checkout, *words):
    """Export, and return the archive."""
    done = command(checkout, "export", "study=team", *words, "--out", "share.tar")
    assert done.returncode == 0, done.stderr
    return checkout.root / "share.tar"


def train(checkout, *settings):
    done = checkout.snakemake("evaluations", "study=team", *settings)
    assert done.returncode == 0, done.stdout + done.stderr


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


def test_other_code_and_another_sft_policy_are_refused(two):
    ann, ben = two
    archive = share(ben, "methods=LLMJudge", "seeds=11")
    (ann.root / "results/team/sft/summary.json").write_text("of another SFT run")
    ann.edit("hgrpo/learning/round.py", "import time", "import time\n\nCHANGED = 1")
    said = command(ann, "import_results", str(archive)).stderr
    assert "LLMJudge, rl_round: code " in said and "check out the same revision" in said
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
    path.write_text("mine")
    done = command(ann, "import_results", str(archive))
    assert done.returncode == 2 and "here are other results of the same job" in done.stderr
    assert path.read_text() == "mine"


def test_unfinished_results_are_not_exported(two):
    ann, _ = two
    done = command(ann, "export", "study=team", "methods=flatGRPO", "seeds=11,23")
    assert done.returncode == 2
    assert "results/team/rl/flatGRPO/seed_23/round_1: not finished, or out of date" in done.stderr
    assert not list(ann.root.glob("*.tar"))


@pytest.mark.parametrize("damage", ["cut", "byte", "other", "none"])
def test_a_damaged_archive_changes_nothing(two, damage):
    ann, ben = two
    archive = share(ben, "methods=LLMJudge", "seeds=11")
    content = bytearray(archive.read_bytes())
    if damage == "cut":
        archive.write_bytes(content[: len(content) // 2])
    elif damage == "byte":
        content[content.rindex(b"rl_round ")] ^= 1
        archive.write_bytes(content)
    elif damage == "other":
        with tarfile.open(archive, "a") as opened:
            extra = ann.root / "extra"
            extra.write_text("not listed")
            opened.add(extra, arcname="rl/extra")
    else:
        archive.unlink()
    before = sorted((ann.root / "results").rglob("*"))
    done = command(ann, "import_results", str(archive))
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert sorted((ann.root / "results").rglob("*")) == before


def test_a_path_outside_the_results_is_refused(two, tmp_path):
    ann, ben = two
    archive = share(ben, "methods=LLMJudge", "seeds=11")
    with tarfile.open(archive) as opened:
        manifest = json.loads(opened.extractfile("export.json").read())
    manifest["files"]["../outside"] = "0" * 64
    evil = tmp_path / "evil.tar"
    (tmp_path / "export.json").write_text(json.dumps(manifest))
    with tarfile.open(evil, "w") as opened:
        opened.add(tmp_path / "export.json", arcname="export.json")
    done = command(ann, "import_results", str(evil))
    assert done.returncode == 2 and "outside of the study's results" in done.stderr
