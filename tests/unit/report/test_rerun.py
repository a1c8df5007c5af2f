"""The commands on the page: the Makefile takes them, and they name what was overridden."""

import subprocess

import pytest
from places import PROJECT

from hgrpo.config.read import read_yaml
from hgrpo.report.rerun import DEFAULT_STUDY, SEEDS, command, target_command, with_more_seeds

STUDY = {"name": "bakeoff", "seeds": [11], "rounds": 5, "methods": {"SFTOnly": {}, "RLOO": {}}}


@pytest.mark.parametrize(
    ("changes", "overridden", "seeds", "expected"),
    [
        ({}, {}, [], "make bakeoff"),
        ({}, {}, [11, 23, 31], 'make bakeoff SEEDS="11 23 31"'),
        ({"name": "grid"}, {"rounds": 5}, [], "make bakeoff STUDY=grid ROUNDS=5"),
        ({}, {"seeds": [11]}, [], "make bakeoff SEEDS=11"),
        (
            {},
            {"methods": ["SFTOnly", "RLOO"]},
            [11, 2],
            'make bakeoff SEEDS="11 2" METHODS="SFTOnly RLOO"',
        ),
        (
            {},
            {"mine": ["RLOO"], "methods": ["SFTOnly", "Vine", "RLOO"]},
            [],
            'make bakeoff METHODS="SFTOnly Vine" MINE=RLOO',
        ),
        (
            {},
            {"training.lr": 1e-4, "reference": "RLOO"},
            [],
            "make bakeoff SET='reference=RLOO training.lr=0.0001'",
        ),
        (
            {},
            {"sft.adapter": "$SHARED/my sft", "description": "null", "truth": None},
            [],
            """make bakeoff SET='description="null" sft.adapter=$$SHARED/my sft truth=null'""",
        ),
    ],
)
def test_a_command_names_what_is_not_in_the_file(changes, overridden, seeds, expected):
    assert command(STUDY | changes, overridden, seeds) == expected


@pytest.mark.parametrize(
    ("overridden", "expected"),
    [
        ({}, "snakemake viewer --config study=bakeoff"),
        (
            {"seeds": [11], "rounds": 5, "methods": ["SFTOnly", "RLOO"]},
            "snakemake viewer --config study=bakeoff seeds=11 rounds=5 methods=SFTOnly,RLOO",
        ),
        (
            {"training.lr": 1e-4, "reference": "RLOO"},
            "snakemake viewer --config study=bakeoff set='reference=RLOO training.lr=0.0001'",
        ),
    ],
)
def test_a_page_of_the_same_runs_names_what_was_overridden(overridden, expected):
    assert target_command("viewer", STUDY, overridden) == expected


def test_the_default_study_is_the_makefiles():
    words = ["make", "-n", "plan"]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, encoding="utf-8", check=True)
    assert f" study={DEFAULT_STUDY} " in done.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("seeds", "more"),
    [
        ([11], ' SEEDS="11 23 31 47 59"'),
        ([7], ' SEEDS="7 11 23 31 47"'),
        ([31, 11], ' SEEDS="31 11 23 47 59"'),
    ],
)
def test_too_few_seeds_become_five(seeds, more):
    study = {"name": "smoke", "seeds": seeds}
    assert with_more_seeds(study, {}, 5) == f"make bakeoff STUDY=smoke{more}"
    # The study's file declares others than the command line.
    typed = {"seeds": seeds, "mine": ["Late"]}
    assert with_more_seeds(study, typed, 5) == f"make bakeoff STUDY=smoke{more} MINE=Late"
    assert with_more_seeds({"name": "smoke", "seeds": [1, 2, 3, 4, 5]}, {}, 5) == ""


def test_suggested_seeds_are_those_of_the_shipped_studies_or_new():
    for path in sorted((PROJECT / "configs/studies").glob("*.yaml")):
        declared = tuple(read_yaml(path).get("seeds", SEEDS[:1]))
        # Repeats and tuning share no seed with the studies that they follow.
        new = declared[0] not in SEEDS
        assert not {*declared} & {*SEEDS} if new else declared == SEEDS[: len(declared)], path.name
