"""Print a study with every name resolved, or write down the one that results belong to.

Example:
    python -m hgrpo.cli.config configs/studies/bakeoff.yaml --rounds 3
"""

import argparse
import sys
from pathlib import Path

import yaml

from hgrpo.atomic import atomic_file
from hgrpo.cli.entry import read_config, run
from hgrpo.config.study import OVERRIDES, load_study
from hgrpo.provenance import provenance


def main() -> None:
    """Print the study, or write `--config` with its provenance to `--out`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", nargs="?", type=Path, help="a file in configs/studies")
    for key in OVERRIDES:
        parser.add_argument(f"--{key}", help=f"in place of the study's {key}")
    parser.add_argument("--config", help="a resolved study (JSON, or a JSON or YAML file)")
    parser.add_argument("--out", type=Path, help="write the resolved study here")
    args = parser.parse_args()
    if (args.study is None) == (args.config is None):
        parser.error("give either a study file or --config")
    if args.study is None:
        resolved = read_config(args.config)
    else:
        given = {key: getattr(args, key) for key in OVERRIDES if getattr(args, key) is not None}
        resolved = load_study(args.study, given).resolved()
    if args.out is None:
        yaml.safe_dump(resolved, sys.stdout, sort_keys=False)
        return
    with atomic_file(args.out) as path:
        path.write_text(
            yaml.safe_dump(resolved | {"provenance": provenance("config")}, sort_keys=False)
        )


if __name__ == "__main__":
    run(main)
