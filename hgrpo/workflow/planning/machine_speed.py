"""Speed of this machine on two small tasks, in CPU time, so that other load matters little."""

import contextlib
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_MEASURED_S = 0.2  # of each task
_BFLOAT16 = (" avx512_bf16", " amx_bf16")  # of /proc/cpuinfo; as `policy.precision` has them


class MachineSpeed(NamedTuple):
    """CPU seconds of 100 products of float32 matrices [64, 64] and of a loop of 20,000 steps."""

    matmul: float
    python: float
    bfloat16: bool  # whether the processor has instructions for products in bfloat16


@functools.cache
def machine_speed() -> MachineSpeed:
    """Measure this machine, once in a process."""
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
