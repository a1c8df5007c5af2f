"""Which runs the Makefile asks snakemake to start first."""

import pytest
from places import PROJECT

from hgrpo.study.study import load_study
from hgrpo.workflow.longest_runs import longest_runs


@pytest.mark.parametrize(
    ("name", "overrides", "first"),
    [
        ("bakeoff", {"seeds": "23,11"}, ["rl/Vine/seed_23/round_5/summary.json"]),
        ("bakeoff", {"methods": "SFTOnly,flatGRPO"}, []),
        ("webshop", {}, []),
    ],
)
def test_runs_of_arms_that_play_to_compute_credit(name, overrides, first):
    study = load_study(PROJECT / f"configs/studies/{name}.yaml", overrides)
    assert longest_runs(study) == first
