"""Speed of this machine on two small tasks, measured once a day and kept in the user's cache."""

import contextlib
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hgrpo.atomic import atomic_file
from hgrpo.provenance import processor

_MEASURED_S = 0.4  # of each task
_MAX_AGE_S = 24 * 3600.0  # other load, heat and frequency limits change a machine's speed
_BFLOAT16 = (" avx512_bf16", " amx_bf16")  # of /proc/cpuinfo; as `policy.precision` has them


class MachineSpeed(NamedTuple):
    """CPU seconds of 100 products of float32 matrices [64, 64] and of a loop of 20,000 steps."""

    matmul: float
    python: float
    bfloat16: bool  # whether the processor has instructions for products in bfloat16


def machine_speed(cache: Path | None = None) -> MachineSpeed:
    """This machine's speed, from the cache (default $XDG_CACHE_HOME or ~/.cache) or measured."""
    folder = cache or Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    path = folder / "hgrpo" / "machine_speed.json"
    machine = [processor(), platform.node(), platform.python_version()]
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        known = json.loads(path.read_text(encoding="utf-8"))
        if known["machine"] == machine and abs(time.time() - path.stat().st_mtime) < _MAX_AGE_S:
            return MachineSpeed(**known["speed"])
    speed = measure()
    with contextlib.suppress(OSError), atomic_file(path) as file:  # a home may be read-only
        file.write_text(
            json.dumps({"machine": machine, "speed": speed._asdict()}) + "\n", encoding="utf-8"
        )
    return speed


def measure() -> MachineSpeed:
    """Measure both tasks."""
    import numpy as np

    # BLAS multiplies matrices of this size in one thread.
    one = np.full((100, 64, 64), 0.01, np.float32)
    out, flags = np.empty_like(one), ""
    with contextlib.suppress(OSError):
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return MachineSpeed(
        _least_seconds(lambda: np.matmul(one, one, out=out)),
        _least_seconds(lambda: sum(number % 7 for number in range(20_000))),
        any(flag in flags for flag in _BFLOAT16),
    )


def _least_seconds(task: Callable[[], object]) -> float:
    """Least CPU seconds of a task of milliseconds, because other load lengthens some repeats."""
    least, ends = float("inf"), time.perf_counter() + _MEASURED_S
    while time.perf_counter() < ends:
        began = time.thread_time()
        task()
        least = min(least, time.thread_time() - began)
    return least
