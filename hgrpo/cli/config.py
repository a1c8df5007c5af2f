"""Print a study with every name resolved, or write down the one that results belong to.

Example:
    python -m hgrpo.cli.config configs/studies/bakeoff.yaml --rounds 3
"""

import argparse
import importlib.metadata
import os
import platform
import sys
from pathlib import Path

import yaml

from hgrpo.atomic import atomic_file
from hgrpo.cli.entry import read_config, run
from hgrpo.config.study import OVERRIDES, load_study

PACKAGES = (
    "hgrpo",
    "numpy",
    "pandas",
    "scipy",
    "statsmodels",
    "torch",
    "transformers",
    "peft",
    "tokenizers",
    "snakemake",
    "alfworld",
    "textworld",
)


def main() -> None:
    """Print the study, or write `--config` with its provenance to `--out`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", nargs="?", type=Path, help="a file in configs/studies")
    for key in OVERRIDES:
        parser.add_argument(f"--{key}", help=f"in place of the study's {key}")
    parser.add_argument(
        "--config", help="a resolved study (JSON, or a JSON or YAML file)"
    )
    parser.add_argument("--out", type=Path, help="write the resolved study here")
    args = parser.parse_args()
    if (args.study is None) == (args.config is None):
        parser.error("give either a study file or --config")
    if args.study is None:
        resolved = read_config(args.config)
    else:
        given = {
            key: getattr(args, key)
            for key in OVERRIDES
            if getattr(args, key) is not None
        }
        resolved = load_study(args.study, given).resolved()
    if args.out is None:
        yaml.safe_dump(resolved, sys.stdout, sort_keys=False)
        return
    with atomic_file(args.out) as path:
        path.write_text(
            yaml.safe_dump(resolved | {"provenance": provenance()}, sort_keys=False)
        )


def provenance() -> dict:
    """Versions and machine of this process; package versions are read without importing them."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": _processor(),
        "cores": os.cpu_count(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [
        line.partition(":")[2].strip()
        for line in lines
        if line.startswith("model name")
    ]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    run(main)
