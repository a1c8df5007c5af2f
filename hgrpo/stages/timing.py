"""Records how many seconds a stage took, for stages that Snakemake may cache.

Snakemake refuses a rule with both `benchmark` and `cache`, so these stages time themselves.
"""

import json
import time
from pathlib import Path

TIMING = "timing.json"


def write_timing(out: Path, began: float) -> None:
    """Write the seconds since `began`, a reading of `time.perf_counter`."""
    text = json.dumps({"s": time.perf_counter() - began})
    (out / TIMING).write_text(f"{text}\n", encoding="utf-8")
