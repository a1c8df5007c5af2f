"""A small study as its file would declare it, and rows that runs of it might have."""

import pandas as pd

from hgrpo.config.read import validate
from hgrpo.sandbox.studies.study import SandboxStudy

DECLARED = {
    "question": "Which one?",
    "seeds": 3,
    "base": {"task": "token_reversal", "batch_size": 16, "num_steps": 8, "eval_every": 4},
    "arms": {"A": {"method": "DG"}, "B": {"method": "GRPO", "rule": {"beta": 0.0}}},
    "metric": {"column": "test_error", "better": "lower"},
    "pairs": [["A", "B"]],
}


def study(**changes: object) -> SandboxStudy:
    return validate(SandboxStudy, DECLARED | changes, "small.yaml")


def rows(column: str, *seeds: list[float], **more: list[float]) -> pd.DataFrame:
    """Rows in the order of a log: each step with all seeds; `more` are columns of every seed."""
    steps = range(len(seeds[0]))
    table = [
        {"step": 4 * at, "seed": seed, column: values[at], **{k: v[at] for k, v in more.items()}}
        for at in steps
        for seed, values in enumerate(seeds)
    ]
    return pd.DataFrame(table)
