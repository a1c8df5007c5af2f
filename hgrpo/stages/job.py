"""Which job of a stage runs, and how long it took."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

TIMING = "timing.json"


@dataclass(frozen=True)
class Job:
    """One job of a stage.

    Attributes:
        method: name of the arm; "" if the job belongs to all arms.
        seed: the run's seed; in stages before the runs, the seed of the random draws.
        round: number of the round, from 1; round 0 is the SFT policy.
        code: hash of the code that the job runs, stored with its results and checkpoints.
    """

    method: str = ""
    seed: int = 0
    round: int = 0
    code: str = ""


def write_timing(out: Path, began: float) -> None:
    """Write the seconds since `began`, a reading of `time.perf_counter`.

    Snakemake refuses a rule with both `benchmark` and `cache`, so stages that it may cache time
    themselves.
    """
    text = json.dumps({"s": time.perf_counter() - began})
    (out / TIMING).write_text(f"{text}\n", encoding="utf-8")
