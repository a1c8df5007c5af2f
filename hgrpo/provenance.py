"""Where a result comes from: versions, code and hardware."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from hgrpo.config.code_version import code_version

_PACKAGES = (
    "hgrpo",
    "torch",
    "transformers",
    "peft",
    "tokenizers",
    "numpy",
    "pyarrow",
    "alfworld",
)


def provenance(stage: str, assigner: str | None = None) -> dict:
    """Package versions, the code hash of stage and assigner, Python, processor and threads."""
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "packages": packages,
        "code": code_version(stage, assigner),
        "python": platform.python_version(),
        "hardware": {
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "threads": int(os.environ.get("OMP_NUM_THREADS", 0)) or None,
        },
    }
