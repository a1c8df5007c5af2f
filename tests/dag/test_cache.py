"""Two checkouts and one cache: the stages up to SFT are run once, and again after an edit."""

import re
import shutil
from pathlib import Path

import pytest

STAGES = ("assets", "expert", "base", "sft")
FILES = (
    "assets/panels.json",
    "assets/manifest.json",
    "assets/tasks.tar.gz",
    "expert/trajectories.parquet",
    "base/model.safetensors",
    "base/companions.tar.gz",
    "sft/adapter/model.safetensors",
    "sft/adapter/config.json",
)


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """A folder for the outputs that checkouts share."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("SNAKEMAKE_OUTPUT_CACHE", str(folder))
    return folder


def fresh(checkout, root: Path):
    """Another checkout, where nothing has been run."""
    skip = shutil.ignore_patterns("results", ".snakemake")
    shutil.copytree(checkout.root, root, symlinks=True, ignore=skip)
    return type(checkout)(root, checkout.forks)


def run_sft(checkout) -> set[str]:
    """The stages that were run; the others' outputs came from the cache."""
    done = checkout.snakemake("results/grid/sft/summary.json", "--cache")
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout + done.stderr
    return set(re.findall(r"Moving output file results/grid/(\w+)/\S+ to cache", printed))


def test_a_second_checkout_takes_what_the_first_has_made(finished, tmp_path, cache):
    first, second = fresh(finished, tmp_path / "first"), fresh(finished, tmp_path / "second")
    assert run_sft(first) == set(STAGES)
    assert run_sft(second) == set()
    for name in FILES:
        path = second.root / "results/grid" / name
        assert cache in path.resolve().parents
        assert path.read_bytes() == (finished.root / "results/grid" / name).read_bytes()
    # What was taken from the cache is up to date, with `--cache` and without.
    for options in ([], ["--cache"]):
        planned = second.planned(*options)
        assert not {"Games and panels", "Base model", "Supervised fine-tuning"} & planned
        assert "flatGRPO, seed 11: round 1" in planned


def test_an_edit_makes_its_own_entries(finished, tmp_path, cache):
    first, second = fresh(finished, tmp_path / "first"), fresh(finished, tmp_path / "second")
    run_sft(first)
    # Over results that are links into the cache, too.
    assert run_sft(second) == set()
    for name, old, new, stages in (
        ("configs/studies/grid.yaml", "env:", "sft: {epochs: 2}\nenv:", {"sft"}),
        ("hgrpo/learning/imitation.py", "import", "import os\nimport", {"base", "sft"}),
        ("hgrpo/envs/alfworld/generator.py", "import", "import os\nimport", set(STAGES)),
    ):
        before = {path: path.stat().st_mtime_ns for path in cache.iterdir()}
        second.edit(name, old, new)
        assert run_sft(second) == stages
        assert len(list(cache.iterdir())) > len(before)
        assert before == {path: path.stat().st_mtime_ns for path in before}
    assert (first.root / "results/grid/assets/tasks.tar.gz").read_text()


def test_a_study_of_the_users_own_files_is_refused(finished, tmp_path, cache):
    checkout = fresh(finished, tmp_path / "first")
    checkout.edit("configs/studies/grid.yaml", "alfworld-laptop", "alfworld-official")
    with (checkout.root / "configs/studies/grid.yaml").open("a") as handle:
        handle.write("evaluation: {validation_games: 140, test_games: 134}\n")
    done = checkout.snakemake("sft", "--cache")
    assert done.returncode != 0
    assert "error: --cache: a cached result would not tell one folder from another" in done.stderr
    assert "(env alfworld-official: games.folder)" in done.stderr
    assert checkout.snakemake("-n").returncode == 0


def test_without_the_cache_nothing_is_said_of_it(finished):
    done = finished.snakemake("-n")
    assert "cach" not in done.stdout + done.stderr
