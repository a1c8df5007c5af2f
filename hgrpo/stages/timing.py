"""Seconds of a stage that Snakemake's cache may hand out.

Snakemake refuses a `benchmark` beside `cache`, so these stages write their own seconds.
"""

import json
import time
from pathlib import Path

TIMING = "timing.json"


def write_timing(out: Path, began: float) -> None:
    """Write the seconds since `began`, a reading of `time.perf_counter`."""
    (out / TIMING).write_text(json.dumps({"s": time.perf_counter() - began}) + "\n")
