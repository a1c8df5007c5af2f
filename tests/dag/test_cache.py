"""Two checkouts and one cache: the stages up to SFT are run once, and again after an edit."""

import re
import shutil
from pathlib import Path

import pytest
import yaml
from grid_study import STUDY

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


@pytest.mark.slow
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
    assert (first.root / "results/grid/assets/tasks.tar.gz").read_text(encoding="utf-8")


MODEL = {"name": "mine", "path": "$MODELS/m"}


@pytest.fixture
def own(finished, tmp_path, monkeypatch):
    """A function that makes a checkout whose study reads games and a model of the user's."""
    folder = tmp_path / "data"
    for split in ("train", "valid_seen", "valid_unseen"):
        (folder / "games" / split / "g1").mkdir(parents=True)
        (folder / "games" / split / "g1/game.tw-pddl").write_text("{}", encoding="utf-8")
    (folder / "m").mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / "m" / name).write_text("{}", encoding="utf-8")
    monkeypatch.setenv("GAMES", str(folder / "games"))
    monkeypatch.setenv("MODELS", str(folder))

    def made(name):
        checkout = fresh(finished, tmp_path / name)
        configs = checkout.root / "configs"
        env = yaml.safe_load((configs / "envs/alfworld-official.yaml").read_bytes())
        env["games"] |= {"folder": "$GAMES", "expected": None}
        (configs / "envs/mine.yaml").write_text(yaml.safe_dump(env), encoding="utf-8")
        (configs / "models/mine.yaml").write_text(yaml.safe_dump(MODEL), encoding="utf-8")
        study = STUDY | {"env": "mine", "model": "mine"}
        study["evaluation"] = {"validation_games": 1, "test_games": 1}
        (configs / "studies/grid.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
        return checkout

    return folder, made


@pytest.mark.slow
def test_the_content_of_the_users_files_is_in_the_key(own, tmp_path, cache, monkeypatch):
    folder, made = own
    first, second = made("first"), made("second")
    assert run_sft(first) == set(STAGES)
    # Another folder with the same files.
    shutil.copytree(folder, tmp_path / "moved")
    monkeypatch.setenv("GAMES", str(tmp_path / "moved/games"))
    monkeypatch.setenv("MODELS", str(tmp_path / "moved"))
    assert run_sft(second) == set()
    for options in ([], ["--cache"]):
        planned = second.planned(*options)
        assert not {"Games and panels", "Base model", "Supervised fine-tuning"} & planned
    # Of the same sizes, so that no plan without the cache notices.
    (tmp_path / "moved/games/train/g1/game.tw-pddl").write_text("[]", encoding="utf-8")
    assert run_sft(made("third")) == {"assets", "expert", "sft"}
    (tmp_path / "moved/m/model.safetensors").write_text("[]", encoding="utf-8")
    assert run_sft(made("fourth")) == {"base", "sft"}


def test_files_that_are_not_there_are_named(own, cache):
    folder, made = own
    checkout = made("first")
    shutil.rmtree(folder / "games/train")
    done = checkout.snakemake("results/grid/sft/summary.json", "--cache")
    assert done.returncode != 0
    said = f"error: --cache: games.folder: $GAMES: there is no {folder}/games/train/"
    assert said in done.stderr and "make fetch-assets" in done.stderr
    assert "Traceback" not in done.stderr
    assert checkout.snakemake("-n").returncode == 0


def test_without_the_cache_nothing_is_said_of_it(finished):
    done = finished.snakemake("-n")
    assert "cach" not in done.stdout + done.stderr
