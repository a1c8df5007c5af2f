"""Draws from global generators: equal if a job runs again, different in every other job."""

import random

import numpy as np
import pytest
import torch

from hgrpo.cli.run_stage import _seed_globals
from hgrpo.stages.paths import Job

JOB = Job("Mine", 11, 1, "code")


def draws(stage: str, job: Job) -> list[float]:
    _seed_globals(stage, job)
    return [random.random(), np.random.rand(), torch.rand(1).item()]


def test_a_job_that_runs_again_draws_the_same():
    assert draws("rl_round", JOB) == draws("rl_round", Job("Mine", 11, 1, "later code"))


@pytest.mark.parametrize(
    ("stage", "job"),
    [
        ("credit_fit", JOB),
        ("rl_round", Job("Other", 11, 1)),
        ("rl_round", Job("Mine", 23, 1)),
        ("rl_round", Job("Mine", 11, 2)),
    ],
)
def test_every_other_job_draws_other_numbers(stage, job):
    assert not set(draws("rl_round", JOB)) & set(draws(stage, job))
